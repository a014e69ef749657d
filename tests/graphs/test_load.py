import gzip
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.datasets import TUDataset

from idgnn.graphs import load as loading
from idgnn.graphs.catalog import CATALOG, find
from idgnn.graphs.dataset import checksum, select
from idgnn.graphs.labels import node_clustering
from idgnn.graphs.load import load, read_molhiv, read_molhiv_split
from idgnn.graphs.raw_files import expected, fetch, file_problems, is_available
from idgnn.graphs.splits import provided

# Graphs, nodes, columns of edge_index, of x and of edge_attr, classes: as published.
TU = {
    "ENZYMES": (600, 19580, 74564, 3, 0, [100] * 6),
    "PROTEINS": (1113, 43471, 162088, 3, 0, [663, 450]),
    "BZR": (405, 14479, 31070, 53, 0, [319, 86]),
    "COX2": (467, 19252, 40578, 35, 0, [365, 102]),
    "MUTAG": (188, 3371, 7442, 7, 4, [63, 125]),
    "PTC_MR": (344, 4915, 10108, 18, 4, [192, 152]),
}


@pytest.fixture
def copied(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Copies the raw files of a dataset to a folder that IDGNN_DATA then names."""

    def copy(name: str) -> Path:
        for each in expected(find(name)):
            (tmp_path / "data" / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(data_dir / each, tmp_path / "data" / each)
        monkeypatch.setenv("IDGNN_DATA", str(tmp_path / "data"))
        return tmp_path / "data"

    return copy


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def no_network(*arguments: object, **options: object) -> None:
        raise OSError("network is unreachable")

    monkeypatch.delenv("IDGNN_DATA", raising=False)
    monkeypatch.setattr("torch_geometric.data.download_url", no_network)


@pytest.mark.parametrize("name", TU)
def test_tu_datasets_have_the_published_sizes(name: str, data_dir: Path, cache: Path) -> None:
    dataset = load(name)
    graphs, nodes, edges, columns, edge_columns, classes = TU[name]
    assert len(dataset) == graphs == CATALOG[name].num_graphs
    assert sum(graph.num_nodes for graph in dataset.graphs) == nodes
    assert sum(graph.num_edges for graph in dataset.graphs) == edges
    assert torch.cat([graph.y for graph in dataset.graphs]).bincount().tolist() == classes
    for graph in dataset.graphs:
        assert graph.x.shape == (graph.num_nodes, columns) and (graph.x.sum(dim=1) == 1).all()
        assert graph.is_undirected() and graph.y.shape == (1,)
        assert (graph.num_edge_features == edge_columns) and (
            not edge_columns or (graph.edge_attr.sum(dim=1) == 1).all()
        )


@pytest.mark.parametrize("name", ["MUTAG", "BZR"])
def test_tu_graphs_are_those_of_pygs_dataset(name: str, copied: Callable[[str], Path], cache: Path) -> None:
    theirs = list(TUDataset(str(copied(name) / "TUDataset"), name))
    assert checksum(load(name).graphs) == checksum(theirs)


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "columns", "classes", "train", "valid"),
    [
        ("MUTAG-folds", 3371, 7442, 7, [63, 125], 170, 18),
        ("PTC-folds", 8792, 17862, 22, [192, 152], 310, 34),
        ("PROTEINS-folds", 43471, 162088, 3, [663, 450], 1002, 111),
    ],
)
def test_datasets_with_published_folds(
    name: str, nodes: int, edges: int, columns: int, classes: list[int], train: int, valid: int, data_dir: Path,
    cache: Path,
) -> None:  # fmt: skip
    dataset = load(name)
    assert len(dataset) == CATALOG[name].num_graphs
    assert sum(graph.num_nodes for graph in dataset.graphs) == nodes
    assert sum(graph.num_edges for graph in dataset.graphs) == edges
    assert torch.cat([graph.y for graph in dataset.graphs]).bincount().tolist() == classes
    for graph in dataset.graphs:
        assert graph.x.shape == (graph.num_nodes, columns) and (graph.x.sum(dim=1) == 1).all()
        assert graph.is_undirected() and graph.y.shape == (1,)
    held_out = torch.cat([fold["valid"] for fold in dataset.provided_folds])
    assert held_out.unique().numel() == held_out.numel() == 10 * valid
    for fold in dataset.provided_folds:
        assert [len(fold["train"]), len(fold["valid"])] == [train, valid]
        assert torch.cat([fold["train"], fold["valid"]]).unique().numel() == train + valid


def test_proteins_with_published_folds_are_those_of_tudataset_in_the_same_order(data_dir: Path, cache: Path) -> None:
    for ours, theirs in zip(load("PROTEINS-folds").graphs, load("PROTEINS").graphs, strict=True):
        assert torch.equal(ours.x.sum(0), theirs.x.sum(0)) and torch.equal(ours.y, theirs.y)
        assert ours.num_edges == theirs.num_edges


def test_selected_graphs_keep_their_published_folds(data_dir: Path, cache: Path) -> None:
    dataset = load("MUTAG-folds")
    few = select(dataset, min_nodes=20)
    for all_of, some in zip(dataset.provided_folds, few.provided_folds, strict=True):
        kept = [dataset.graphs[i] for i in all_of["valid"].tolist() if dataset.graphs[i].num_nodes >= 20]
        assert all(few.graphs[i] is each for i, each in zip(some["valid"].tolist(), kept, strict=True))


def test_the_second_load_parses_nothing(data_dir: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load("MUTAG").checksum()

    def never(*arguments: object) -> None:
        raise AssertionError("the files were parsed again")

    monkeypatch.setattr(loading, "read_tu_data", never)
    assert load("mutag").checksum() == first


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "columns", "classes", "public"),
    [("Cora", 2708, 10556, 1433, 7, [140, 500, 1000]), ("CiteSeer", 3327, 9104, 3703, 6, [120, 500, 1000])],
)
def test_citation_graphs(
    name: str, nodes: int, edges: int, columns: int, classes: int, public: list[int], data_dir: Path, cache: Path
) -> None:
    dataset = load(name)
    (graph,) = dataset.graphs
    assert graph.x.shape == (nodes, columns) and set(graph.x.unique().tolist()) == {0.0, 1.0}
    assert graph.num_edges == edges and graph.y.shape == (nodes,) and int(graph.y.max()) + 1 == classes
    assert [int(graph[f"{part}_mask"].sum()) for part in ("train", "val", "test")] == public
    assert [ids.numel() for ids in provided(dataset).values()] == public
    assert load(name).checksum() == dataset.checksum()


def test_citation_graphs_without_scipy(data_dir: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ValueError, match=r"Cora hold scipy matrices, and scipy is not installed.*pip install scipy"):
        load("Cora")


@pytest.mark.parametrize(("name", "graphs", "edges"), [("ba", 100, 12400), ("ws500", 500, 64000)])
def test_released_graphs(name: str, graphs: int, edges: int, data_dir: Path, cache: Path) -> None:
    dataset = load(name)
    assert len(dataset) == graphs and sum(graph.num_edges for graph in dataset.graphs) == 2 * edges
    assert all(graph.is_undirected() and torch.equal(graph.x, torch.ones(64, 1)) for graph in dataset.graphs)
    with np.load(data_dir / "GraphGym_IDGNN" / "synthetic_graphs.npz") as arrays:
        last = arrays[f"{name}_edges"][arrays[f"{name}_edge_ptr"][-2] :]
    assert {frozenset(edge) for edge in dataset.graphs[-1].edge_index.t().tolist()} == set(
        map(frozenset, last.tolist())
    )


def test_the_subsets_of_the_released_experiments(data_dir: Path, cache: Path) -> None:
    enzymes, proteins = (select(load(name), min_edges=200, smallest=100) for name in ("ENZYMES", "PROTEINS"))
    assert len(enzymes) == len(proteins) == 100
    assert sum(graph.num_edges >= 200 for graph in enzymes.graphs) == 31
    sizes = [graph.num_edges for graph in proteins.graphs]
    assert sizes == sorted(sizes) and sizes[0] >= 200
    assert int(max(graph.y.max() for graph in node_clustering(proteins.graphs))) + 1 == 6


def test_the_folder_of_the_user_is_never_written_to(copied: Callable[[str], Path], cache: Path) -> None:
    names = ["MUTAG", "Cora", "ba"]
    for name in names:
        root = copied(name)

    def state() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in [root, *root.rglob("*")]}

    before = state()
    for name in names:
        load(name)
        fetch(name)
        assert is_available(name) and file_problems(name) == []
    assert state() == before


def test_other_files_are_refused_unless_asked_for(copied: Callable[[str], Path], cache: Path) -> None:
    root = copied("MUTAG")
    path = root / "TUDataset/MUTAG/raw/MUTAG_node_labels.txt"
    path.write_text("6" + path.read_text()[1:])
    with pytest.raises(ValueError, match=r"1 of the files of MUTAG .*MUTAG_node_labels.txt.* verify=False"):
        load("MUTAG")
    assert len(load("MUTAG", verify=False)) == 188
    with pytest.raises(ValueError, match="1 of the files of MUTAG"):
        load("MUTAG")  # what was kept of the other files is not mistaken for the right ones
    (problem,) = file_problems("MUTAG")
    assert "MUTAG_node_labels.txt has the SHA-256" in problem
    with pytest.raises(ValueError, match="not what was expected"):
        fetch("MUTAG")


def test_other_pickles_are_never_read(copied: Callable[[str], Path], cache: Path, tmp_path: Path) -> None:
    root = copied("Cora")
    evil = f"cos\nsystem\n(S'touch {tmp_path}/ran'\ntR."
    (root / "Planetoid/Cora/raw/ind.cora.x").write_text(evil)
    for choice in (True, False):
        with pytest.raises(ValueError, match="These files are Python pickles"):
            load("Cora", verify=choice)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["ENZYMES", "Cora", "ogbg-molhiv"])
def test_without_files_and_network_a_sentence_says_what_to_do(name: str, offline: None, cache: Path) -> None:
    with pytest.raises(
        ValueError, match=rf"files of {name} are not in {cache}.*unreachable.*Set IDGNN_DATA .* or connect"
    ):
        load(name)
    assert not is_available(name)
    assert "idgnn data fetch" in file_problems(name)[0]
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_what_cannot_be_downloaded_says_so(offline: None) -> None:
    with pytest.raises(ValueError, match=r"files of ba \(GraphGym_IDGNN/synthetic_graphs.npz\).*cannot be downloaded"):
        load("ba")


@pytest.mark.parametrize("name", ["MUTAG", "Cora"])
def test_a_download_is_put_where_it_is_found_again(
    name: str, data_dir: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def from_disk(url: str, folder: str, log: bool) -> str:
        asked.append(url)
        file = Path(url).name
        if file.endswith(".zip"):
            shutil.make_archive(str(Path(folder) / name), "zip", data_dir / "TUDataset", name)
        else:
            shutil.copy(data_dir / "Planetoid" / name / "raw" / file, folder)
        return os.path.join(folder, file)

    with monkeypatch.context() as patched:
        patched.setattr("torch_geometric.data.download_url", from_disk)
        patched.setenv("IDGNN_DATA", str(cache / "nowhere"))
        assert not is_available(name)
        fetch(name)
        assert is_available(name) and file_problems(name) == []
        downloaded = load(name).checksum()
        number = len(asked)
        load(name)
        assert len(asked) == number
        assert not [path for path in (cache / "raw").iterdir() if path.suffix == ".part"]
    assert downloaded == load(name).checksum()


def test_molhiv_is_ogbs(data_dir: Path, cache: Path) -> None:
    dataset = load("OGBG-MolHIV")
    assert len(dataset) == 41127
    assert sum(graph.num_nodes for graph in dataset.graphs) == 1049163
    assert sum(graph.num_edges for graph in dataset.graphs) == 2259376
    y = torch.cat([graph.y for graph in dataset.graphs])
    split = provided(dataset)
    assert {part: ids.numel() for part, ids in split.items()} == {"train": 32901, "valid": 4113, "test": 4113}
    assert [int(y[split[part]].sum()) for part in ("train", "valid", "test")] == [1232, 81, 130]
    for graph in dataset.graphs[::997]:
        assert graph.x.dtype == torch.bool and graph.x.shape[1] == 174
        assert [
            part.sum(dim=1).unique().tolist() for part in graph.x.split([119, 5, 12, 12, 10, 6, 6, 2, 2], dim=1)
        ] == [[1]] * 9
        there, back = graph.edge_index[:, ::2], graph.edge_index[:, 1::2]
        assert torch.equal(there, back.flip(0)) and torch.equal(graph.edge_attr[::2], graph.edge_attr[1::2])
        assert [part.sum(dim=1).unique().tolist() for part in graph.edge_attr.split([5, 6, 2], dim=1)] == [[1]] * 3
    assert checksum(load("ogbg-molhiv").graphs[:2000]) == checksum(dataset.graphs[:2000])


# Two molecules: three atoms in a row, and a single atom without a bond.
FILES = {
    "raw/num-node-list": "3\n1\n",
    "raw/num-edge-list": "2\n0\n",
    "raw/node-feat": "5,0,4,5,3,0,2,0,0\n118,4,11,11,9,5,5,1,1\n7,0,2,5,0,0,1,0,1\n0,0,0,0,0,0,0,0,0\n",
    "raw/edge": "0,1\n1,2\n",
    "raw/edge-feat": "0,0,0\n4,5,1\n",
    "raw/graph-label": "1\n0\n",
    "split/scaffold/train": "1\n",
    "split/scaffold/valid": "0\n",
    "split/scaffold/test": "",
}


def write(folder: Path, name: str, text: str) -> None:
    path = folder / f"{name}.csv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path, name, text)
    return tmp_path


def test_atoms_and_bonds_become_one_hot_and_two_way(folder: Path) -> None:
    row, single = read_molhiv(folder)
    assert row.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert [each.nonzero().flatten().tolist() for each in row.edge_attr] == [[0, 5, 11]] * 2 + [[4, 10, 12]] * 2
    assert row.x.shape == (3, 174) and row.x.dtype == torch.bool
    assert row.x[1].nonzero().flatten().tolist() == [118, 123, 135, 147, 157, 163, 169, 171, 173]
    assert row.x[0].nonzero().flatten().tolist() == [5, 119, 128, 141, 151, 158, 166, 170, 172]
    assert single.num_nodes == 1 and single.edge_index.shape == (2, 0) and single.edge_attr.shape == (0, 13)
    assert row.y.tolist() == [1] and single.y.tolist() == [0]
    split = {part: ids.tolist() for part, ids in read_molhiv_split(folder).items()}
    assert split == {"train": [1], "valid": [0], "test": []}


def test_values_that_ogb_does_not_have_are_refused(folder: Path) -> None:
    write(folder, "raw/edge-feat", "0,0,0\n5,0,0\n")
    with pytest.raises(ValueError, match=r"values up to \[5, 0, 0\], expected less than \[5, 6, 2\]"):
        read_molhiv(folder)
