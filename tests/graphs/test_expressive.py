"""Graphs that measure expressiveness, against networkx and against what their descriptions say."""

from pathlib import Path
from typing import get_args

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from idgnn.choices import GraphPattern, NodePattern
from idgnn.graphs.expressive import both_directions, read_graph6
from idgnn.graphs.load import load
from idgnn.graphs.raw_files import ensure, find

SPREAD = (1.1715, 3.0478, 7.6137, 17.1356, 2.4642, 0.9723, 0.3447, 36.9943, 2.2969)  # of nodes, training and validation


@pytest.fixture(scope="module")
def counting(data_dir: Path):
    return load("counting")


@pytest.fixture(scope="module")
def zinc(data_dir: Path):
    return load("zinc")


def counts(pattern: nx.Graph, graph: nx.Graph) -> int:
    """Subgraphs, not induced, by every monomorphism."""

    def found(within: nx.Graph) -> int:
        return sum(1 for _ in nx.algorithms.isomorphism.GraphMatcher(within, pattern).subgraph_monomorphisms_iter())

    return found(graph) // found(pattern)


def test_the_columns_of_counts_are_the_choices(data_dir):
    with np.load(data_dir / "expressive" / "counting" / "counting.npz", allow_pickle=False) as arrays:
        assert tuple(map(str, arrays["node_y_names"])) == get_args(NodePattern)
        assert tuple(map(str, arrays["graph_y_names"])) == get_args(GraphPattern)


def test_counting_has_its_sizes_split_and_spread(counting):
    assert len(counting) == 5000
    assert {part: ids.numel() for part, ids in counting.provided_split.items()} == {
        "train": 1500,
        "valid": 1000,
        "test": 2500,
    }
    assert torch.cat(list(counting.provided_split.values())).unique().numel() == 5000
    assert sum(graph.num_nodes for graph in counting.graphs) == 94_000
    assert sum(graph.num_edges for graph in counting.graphs) == 2 * 156_695
    known = torch.cat([counting.provided_split["train"], counting.provided_split["valid"]])
    nodes = torch.cat([counting.graphs[i].node_counts for i in known.tolist()]).double()
    assert torch.allclose(nodes.std(0, correction=0), torch.tensor(SPREAD).double(), atol=1e-4)


def test_cycles_at_nodes_and_in_graphs_are_those_of_networkx(counting):
    for data in [graph for graph in counting.graphs if graph.num_nodes <= 15][:12]:
        graph = to_networkx(data, to_undirected=True)
        through = np.zeros((data.num_nodes, 7), np.int64)
        for cycle in nx.simple_cycles(graph, length_bound=6):
            through[cycle, len(cycle)] += 1
        assert np.array_equal(data.node_counts[:, :4].numpy(), through[:, 3:])
        of = dict(zip(get_args(GraphPattern), data.graph_counts[0].tolist(), strict=True))
        assert [of["triangle"], of["cycle4"], of["cycle5"], of["cycle6"]] == [
            through[:, length].sum() / length for length in (3, 4, 5, 6)
        ]
        assert of["star3"] == counts(nx.star_graph(3), graph)
        assert of["tailed_triangle"] == counts(nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)]), graph)


def test_molecules_are_those_that_were_published(zinc):
    sizes = {part: ids.numel() for part, ids in zinc.provided_split.items()}
    assert sizes == {"train": 10_000, "valid": 1000, "test": 992, "ambiguous": 8}
    first = zinc.graphs[0]  # the first of the validation part of the full set, published with 2.0992
    assert (first.num_nodes, first.num_edges) == (21, 44) and first.y.item() == pytest.approx(2.0992, abs=0.01)
    for molecule in zinc.graphs[::100]:
        assert molecule.x.shape == (molecule.num_nodes, 28) and (molecule.x.sum(1) == 1).all()
        assert molecule.edge_attr.shape == (molecule.num_edges, 3) and (molecule.edge_attr.sum(1) == 1).all()
        assert molecule.is_undirected() and nx.is_connected(to_networkx(molecule, to_undirected=True))
        ends = [
            (*sorted(edge), kind)
            for edge, kind in zip(
                molecule.edge_index.t().tolist(), molecule.edge_attr.int().argmax(1).tolist(), strict=True
            )
        ]
        assert len(set(ends)) == molecule.num_edges // 2  # both directions of a bond are of its kind


def test_graph8c_is_every_connected_graph_with_8_nodes(data_dir):
    graphs = load("graph8c").graphs
    assert len(graphs) == 11_117
    lines = (data_dir / "expressive" / "graph8c" / "graph8c.g6").read_bytes().split()
    for data, line in list(zip(graphs, lines, strict=True))[::50]:
        graph = nx.from_graph6_bytes(line)
        assert nx.is_connected(graph) and graph.number_of_nodes() == 8
        assert {tuple(edge) for edge in data.edge_index.t().tolist()} == set(graph.to_directed().edges)


@pytest.mark.parametrize("size", [2, 5, 9])
def test_graph6_is_read_as_networkx_reads_it(size, tmp_path):
    graphs = [nx.gnp_random_graph(size, 0.5, seed=seed) for seed in range(6)] + [nx.empty_graph(size)]
    path = tmp_path / "graphs.g6"
    path.write_bytes(b"".join(nx.to_graph6_bytes(graph, header=False) for graph in graphs))
    for data, graph in zip(read_graph6(path), graphs, strict=True):
        assert data.num_nodes == size and data.x.shape == (size, 1)
        assert {tuple(edge) for edge in data.edge_index.t().tolist()} == set(graph.to_directed().edges)


def test_graph6_of_different_sizes_is_refused(tmp_path):
    path = tmp_path / "graphs.g6"
    path.write_bytes(b"".join(nx.to_graph6_bytes(nx.path_graph(size), header=False) for size in (4, 3)))
    with pytest.raises(ValueError, match="different sizes, or of more than 62 nodes, expected one size"):
        read_graph6(path)


def test_both_directions_of_an_edge_are_side_by_side():
    assert both_directions(torch.tensor([[0, 1], [1, 2]])).tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert Data(edge_index=both_directions(torch.zeros(0, 2, dtype=torch.long)), num_nodes=1).num_edges == 0


@pytest.mark.parametrize("name", ["counting", "zinc", "graph8c"])
def test_files_that_are_not_there_are_named(name, tmp_path, monkeypatch):
    monkeypatch.setenv("IDGNN_DATA", str(tmp_path))
    monkeypatch.setenv("IDGNN_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=f"files of {name} .*cannot be downloaded: .*Set IDGNN_DATA"):
        ensure(find(name))
