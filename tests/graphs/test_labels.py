import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from idgnn.graphs import structure
from idgnn.graphs.dataset import checksum
from idgnn.graphs.labels import (
    graph_clustering,
    node_clustering,
    quantile_bins,
    shortest_paths,
)
from idgnn.graphs.structure import clustering_coefficients, clustering_of
from idgnn.graphs.synthetic import random_regular
from tests.graphs.corner_cases import CORNER_CASES, any_graph, as_networkx


def by_networkx(data: Data) -> list[float]:
    return list(map(float, nx.clustering(as_networkx(data)).values()))


@given(st.lists(any_graph(), max_size=4))
def test_clustering_is_that_of_networkx(graphs: list[Data]) -> None:
    assert [each.tolist() for each in clustering_of(graphs)] == [by_networkx(data) for data in graphs]


def test_clustering_of_corner_cases_and_of_larger_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = Data(edge_index=torch.randint(60, (2, 900)), num_nodes=70)
    for at_once in (1 << 22, 100):  # in one step, and in many
        monkeypatch.setattr(structure, "_STEP", at_once)
        for data in [*CORNER_CASES, dense]:
            found = clustering_coefficients(data)
            assert found.dtype == torch.float64 and found.tolist() == by_networkx(data)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 12))
def test_classes_are_in_the_order_of_the_values_and_all_there(numbers: list[int], bins: int) -> None:
    values = torch.tensor(numbers, dtype=torch.float64)
    classes = quantile_bins(values, bins)
    assert classes.unique().tolist() == list(range(int(classes.max()) + 1))
    assert classes.max() < bins
    for a, ca in zip(numbers, classes.tolist(), strict=True):
        for b, cb in zip(numbers, classes.tolist(), strict=True):
            assert ca == cb or (a < b) == (ca < cb)
            assert a != b or ca == cb


@pytest.mark.parametrize(("num", "bins"), [(100, 10), (23, 10), (7, 7), (7, 3)])
def test_without_ties_all_classes_are_there_and_of_equal_sizes(num: int, bins: int) -> None:
    counts = quantile_bins(torch.randperm(num).double(), bins).bincount(minlength=bins)
    assert counts.numel() == bins and counts.max() - counts.min() <= 1


def test_no_values_give_no_labels_and_no_bins_are_refused() -> None:
    assert quantile_bins(torch.empty(0)).numel() == 0
    with pytest.raises(ValueError, match="bins is 0, expected at least 1"):
        quantile_bins(torch.ones(3), 0)


def test_labels_of_nodes_and_graphs_are_quantile_bins_of_clustering() -> None:
    graphs = [*random_regular(6, 10, 4), *random_regular(6, 12, 3)]
    before = checksum(graphs)
    nodes, wholes = node_clustering(graphs, bins=4), graph_clustering(graphs, bins=4)
    values = torch.tensor([value for data in graphs for value in by_networkx(data)], dtype=torch.float64)
    means = torch.tensor([nx.average_clustering(as_networkx(data)) for data in graphs], dtype=torch.float64)
    assert torch.equal(torch.cat([data.y for data in nodes]), quantile_bins(values, 4))
    assert torch.equal(torch.cat([data.y for data in wholes]), quantile_bins(means.round(decimals=12), 4))
    assert [data.y.shape for data in wholes] == [torch.Size([1])] * 12
    assert checksum(graphs) == before, "the graphs that were given were changed"


def test_renaming_nodes_does_not_change_the_label_of_a_graph() -> None:
    graphs = random_regular(30, 11, 4)
    order = torch.randperm(11)
    renamed = [Data(x=data.x, edge_index=order[data.edge_index]) for data in graphs]
    labels = torch.cat([data.y for data in graph_clustering([*graphs, *renamed])])
    assert labels.max() > 2 and torch.equal(labels[:30], labels[30:])


@given(st.lists(any_graph(), max_size=4), st.integers(1, 5))
def test_distances_are_those_of_networkx_from_the_second_node_to_the_first(graphs: list[Data], cutoff: int) -> None:
    for data in shortest_paths(graphs, pairs=40, cutoff=cutoff):
        lengths = dict(nx.all_pairs_shortest_path_length(as_networkx(data, directed=True)))
        for (u, v), label in zip(data.edge_label_index.t().tolist(), data.edge_label.tolist(), strict=True):
            assert label == min(lengths[v][u], cutoff)


@pytest.mark.parametrize("at_once", [1 << 22, 1])
def test_only_pairs_without_a_path_are_dropped(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(structure, "_STEP", at_once)  # all graphs together, and each apart
    ring = random_regular(1, 150, 2, seed=3)[0]  # cycles: long paths, more roots than a machine word has bits
    for data in shortest_paths([*CORNER_CASES, ring], pairs=400, cutoff=200):
        graph = as_networkx(data, directed=True)
        nodes = data.num_nodes
        drawn = set(map(tuple, data.edge_label_index.t().tolist()))
        lengths = dict(nx.all_pairs_shortest_path_length(graph))
        reachable = {(u, v) for v in range(nodes) for u in lengths[v]}
        assert drawn <= reachable
        if nodes <= 7:  # 400 draws meet all of 49 pairs
            assert drawn == reachable
        for (u, v), label in zip(data.edge_label_index.t().tolist(), data.edge_label.tolist(), strict=True):
            assert label == lengths[v][u]


def test_pairs_are_uniform_and_depend_on_the_seed_only() -> None:
    graphs = random_regular(40, 5, 4)
    first = shortest_paths(graphs, pairs=1000, seed=5)
    assert checksum(first) == checksum(shortest_paths(graphs, pairs=1000, seed=5))
    assert checksum(first) != checksum(shortest_paths(graphs, pairs=1000, seed=6))
    assert all(data.edge_label.numel() == 1000 for data in first)
    cells = torch.cat([data.edge_label_index for data in first], dim=1)
    counts = (cells[0] * 5 + cells[1]).bincount(minlength=25).double()
    chi_square = ((counts - 1600) ** 2 / 1600).sum()
    assert chi_square < 51  # 24 degrees of freedom: exceeded once in a thousand seeds


def test_no_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="pairs is 0 and cutoff is 4"):
        shortest_paths(CORNER_CASES, pairs=0)
