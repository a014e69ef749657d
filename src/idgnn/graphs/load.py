"""Datasets by name: generated, or read from raw files by PyG's readers and kept in the cache in processed form."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data, read_tu_data
from torch_geometric.utils import to_undirected

from idgnn.graphs.cache import cache_key, cached
from idgnn.graphs.catalog import CatalogEntry, find
from idgnn.graphs.dataset import Dataset
from idgnn.graphs.expressive import read_counting, read_expressive_split, read_graph6, read_zinc
from idgnn.graphs.raw_files import RawFiles, ensure
from idgnn.graphs.synthetic import scale_free, small_world

_GENERATORS = {"ScaleFree": scale_free, "SmallWorld": small_world}

# How many values each column can take: OGB fixes them for all of its molecules, not only for those seen here.
# Atoms: atomic number, chirality, degree, charge, hydrogens, radical electrons, hybridization, aromatic, in a ring.
_ATOM_SIZES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
# Bonds: type, stereochemistry, conjugated.
_BOND_SIZES = (5, 6, 2)


def load(name: str, *, seed: int = 0, verify: bool = True) -> Dataset:
    """The dataset of that name, in upper or lower case; :data:`idgnn.graphs.catalog.NAMES` lists them.

    Files are searched in the folder named by IDGNN_DATA, then in the cache, and otherwise downloaded. Their SHA-256 is
    verified; the processed graphs are kept in the cache, so that the next call is fast.

    Args:
        name: one of them.
        seed: for the datasets that are generated; the others do not depend on it.
        verify: whether files with another SHA-256 than expected are refused. Pickles (Cora, CiteSeer) always are.
    """
    entry = find(name)
    if entry.name in _GENERATORS:
        return Dataset(entry.name, _GENERATORS[entry.name](seed=seed))
    return _benchmark(entry, verify)


def _benchmark(entry: CatalogEntry, verify: bool) -> Dataset:
    """A dataset that is read from raw files.

    TU sets: `x` is the one-hot node label (no continuous attributes), `edge_attr` the one-hot edge label where there is
    one, `y` `[1]` the class. Cora, CiteSeer: `x` the 0/1 features, `y` `[num_nodes]` the classes, and the public split
    as `train_mask`, `val_mask`, `test_mask`. ogbg-molhiv: see :func:`read_molhiv`. counting, zinc, graph8c: see
    :mod:`idgnn.graphs.expressive`. The released synthetic graphs: `x` is ones `[num_nodes, 1]`. Those with published
    folds: `x` has a column for each number up to the largest label, also for numbers that no node has, as PPGN and IGN
    have it.
    """
    files = ensure(entry)
    checksums = files.checksums()
    _check_files(entry, files, checksums, verify)
    folder = files.root / str(entry.folder)

    def read() -> list[Data]:
        match entry.group:
            case "tu":
                return _read_tu(folder, entry.name)
            case "planetoid":
                return [_read_planetoid(folder, entry.name)]
            case "molhiv":
                return read_molhiv(folder)
            case "folds":
                return _read_neighbor_lists(folder / f"{folder.name}.txt")
            case "counting":
                return read_counting(folder)
            case "zinc":
                return read_zinc(folder)
            case "graph6":
                return read_graph6(folder / f"{entry.name}.g6")
            case _:
                return _read_released(folder / "synthetic_graphs.npz", entry.name)

    graphs = cached(cache_key(entry.name, *sorted(checksums.items())), read)
    folds = _read_folds(folder / "10fold_idx") if entry.group == "folds" else ()
    return Dataset(entry.name, graphs, provided_split=_read_split(entry, folder), provided_folds=folds)


def _read_split(entry: CatalogEntry, folder: Path) -> dict[str, Tensor]:
    """The split that comes with a dataset of many graphs, if one does."""
    if entry.group == "molhiv":
        return read_molhiv_split(folder)
    return read_expressive_split(folder) if entry.group in ("counting", "zinc") else {}


def _check_files(entry: CatalogEntry, files: RawFiles, checksums: dict[str, str], verify: bool) -> None:
    """Refuses files with other checksums; pickles even if `verify` is false, because reading one can run code."""
    wrong = [each for each in checksums if checksums[each] != files.expected[each]]
    if not wrong or (not verify and entry.group != "planetoid"):
        return
    if entry.group == "planetoid":
        way_out = "These files are Python pickles, which can run code when they are read, so others are never accepted"
    else:
        way_out = "To use them all the same, pass verify=False"
    raise ValueError(
        f"{len(wrong)} of the files of {entry.name} in {files.root} are not the expected ones: {', '.join(wrong)} "
        f"(their SHA-256 differs). Delete them, so that they are downloaded again, or set IDGNN_DATA to a folder with "
        f"the right ones. {way_out}."
    )


def _read_tu(folder: Path, name: str) -> list[Data]:
    whole, slices, sizes = read_tu_data(str(folder), name)
    assert whole.x is not None and whole.edge_index is not None and isinstance(whole.y, torch.Tensor)
    x = whole.x[:, sizes["num_node_attributes"] :].split(slices["x"].diff().tolist())
    edge_index = whole.edge_index.split(slices["edge_index"].diff().tolist(), dim=1)
    graphs = [Data(x=x[i], edge_index=edge_index[i].contiguous(), y=whole.y[i : i + 1]) for i in range(whole.y.numel())]
    if whole.edge_attr is not None:
        attributes = whole.edge_attr.split(slices["edge_attr"].diff().tolist())
        for graph, edge_attr in zip(graphs, attributes, strict=True):
            graph.edge_attr = edge_attr
    return graphs


def _read_planetoid(folder: Path, name: str) -> Data:
    try:
        import scipy.sparse  # noqa: F401, the pickles hold scipy matrices
    except ImportError as error:
        raise ValueError(
            f"the files of {name} hold scipy matrices, and scipy is not installed. It is needed once, to read them: "
            "pip install scipy."
        ) from error
    with warnings.catch_warnings():
        # The pickles are of 2016 and name objects that numpy and scipy have moved since.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", "dtype\\(\\): align should be passed")
        return read_planetoid_data(str(folder), name.lower())


def _read_released(path: Path, name: str) -> list[Data]:
    """The authors' synthetic graphs: undirected edges, each once, of all graphs concatenated."""
    with np.load(path, allow_pickle=False) as arrays:
        num_nodes = arrays[f"{name}_num_nodes"].tolist()
        ptr = torch.from_numpy(arrays[f"{name}_edge_ptr"].astype(np.int64))
        edges = torch.from_numpy(arrays[f"{name}_edges"].astype(np.int64))
    return [
        Data(x=torch.ones(nodes, 1), edge_index=to_undirected(each.t().contiguous(), num_nodes=nodes))
        for nodes, each in zip(num_nodes, edges.split(ptr.diff().tolist()), strict=True)
    ]


def _read_neighbor_lists(path: Path) -> list[Data]:
    """One text of whole numbers: the number of graphs; of each graph its nodes and its class; of each node its label,
    its degree, and its neighbors. Classes are numbered from 0 in their order."""
    numbers = iter(np.array(path.read_text(encoding="ascii").split(), dtype=np.int64).tolist())
    labels, edges, classes = [], [], []
    for _ in range(next(numbers)):
        num_nodes = next(numbers)
        classes.append(next(numbers))
        label, edge = [], []
        for node in range(num_nodes):
            label.append(next(numbers))
            edge += [(node, next(numbers)) for _ in range(next(numbers))]
        labels.append(torch.tensor(label))
        edges.append(torch.tensor(edge, dtype=torch.long).view(-1, 2).t().contiguous())
    width = max(int(label.max()) for label in labels) + 1
    y = torch.tensor(classes).unique(return_inverse=True)[1]
    return [
        Data(x=one_hot(label, width).float(), edge_index=edge, y=y[i : i + 1])
        for i, (label, edge) in enumerate(zip(labels, edges, strict=True))
    ]


def _read_folds(folder: Path) -> tuple[dict[str, Tensor], ...]:
    """The ids of the graphs of each published fold; a few graphs are held out in none."""

    def ids(name: str) -> Tensor:
        return torch.tensor([int(line) for line in (folder / name).read_text(encoding="ascii").split()])

    return tuple({"train": ids(f"train_idx-{i}.txt"), "valid": ids(f"test_idx-{i}.txt")} for i in range(1, 11))


def read_molhiv(folder: Path) -> list[Data]:
    """All molecules: `x` bool `[atoms, 174]` and `edge_attr` bool `[2 * bonds, 13]`, one-hot column by column.

    The columns of `x` are those of OGB's `AtomEncoder`: its sum of embeddings is one linear layer on `x`. Each bond is
    two consecutive edges, one per direction. `y` is 1 for a molecule that inhibits HIV, else 0.
    """
    raw = folder / "raw"
    num_nodes = _column(raw / "num-node-list.csv.gz").tolist()
    num_bonds = _column(raw / "num-edge-list.csv.gz").tolist()
    x = _one_hot(_table(raw / "node-feat.csv.gz", len(_ATOM_SIZES)), _ATOM_SIZES)
    bonds = _table(raw / "edge.csv.gz", 2)
    edge_index = np.stack([bonds, bonds[:, ::-1]], axis=1).reshape(-1, 2)  # [2 * bonds, 2]
    edge_attr = _one_hot(_table(raw / "edge-feat.csv.gz", len(_BOND_SIZES)), _BOND_SIZES).repeat_interleave(2, dim=0)
    y = torch.from_numpy(_column(raw / "graph-label.csv.gz"))
    num_edges = [2 * each for each in num_bonds]
    parts = zip(
        x.split(num_nodes),
        torch.from_numpy(edge_index).split(num_edges),
        edge_attr.split(num_edges),
        y.split(1),
        strict=True,
    )
    return [Data(x=a, edge_index=e.t().contiguous(), edge_attr=b, y=label) for a, e, b, label in parts]


def read_molhiv_split(folder: Path) -> dict[str, Tensor]:
    """The scaffold split that comes with the dataset."""
    path = folder / "split" / "scaffold"
    return {part: torch.from_numpy(_column(path / f"{part}.csv.gz")) for part in ("train", "valid", "test")}


def _table(path: Path, columns: int) -> np.ndarray:
    """The integers of a file `[rows, columns]`. Rows have equal lengths, so line ends are separators like commas."""
    text = gzip.decompress(path.read_bytes()).decode("ascii").replace("\n", ",").rstrip(",")
    return np.fromstring(text, dtype=np.int64, sep=",").reshape(-1, columns)


def _column(path: Path) -> np.ndarray:
    return _table(path, 1)[:, 0]


def _one_hot(values: np.ndarray, sizes: Sequence[int]) -> Tensor:
    """Bool `[rows, sum(sizes)]`: each column one-hot, side by side."""
    if values.size and (values.min() < 0 or (values.max(axis=0) >= np.array(sizes)).any()):
        raise ValueError(
            f"the columns hold values up to {values.max(axis=0).tolist()}, expected less than {list(sizes)}. The files "
            "are not those of ogbg-molhiv: delete them, so that they are downloaded again."
        )
    first = np.cumsum([0, *sizes[:-1]])
    hot = torch.zeros(len(values), sum(sizes), dtype=torch.bool)
    return hot.scatter_(1, torch.from_numpy(values + first), True)
