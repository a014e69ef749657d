from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddRandomWalkPE
from torch_geometric.utils import coalesce, erdos_renyi_graph, to_undirected

from idgnn.identity import cycle_counts as counting
from idgnn.identity.cycle_counts import cycle_counts
from idgnn.identity.cycle_features import AddCycleCounts, cycle_features
from tests.identity.plain_walks import awkward_graphs


def simple_graph(num_nodes, directed=False):
    edge_index = erdos_renyi_graph(num_nodes, 4 / num_nodes, directed=directed)
    return Data(edge_index=edge_index, num_nodes=num_nodes)


@pytest.mark.parametrize("num_nodes", [2, 40, 400])  # a dense matrix, then chunks
@pytest.mark.parametrize("directed", [False, True])
def test_walk_scale_equals_random_walk_pe(num_nodes, directed):
    data = simple_graph(num_nodes, directed)
    expected = AddRandomWalkPE(9, attr_name="pe")(data).pe
    torch.testing.assert_close(AddCycleCounts(9, scale="walk")(data).x, expected, rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize("dense_nodes", [-1, 128])
@given(graph=awkward_graphs(), length=st.integers(1, 6))
def test_walk_scale_returns_with_the_powers_of_the_transition_matrix(dense_nodes, graph, length):
    """Duplicates count, and a node without out-edges returns with probability 0."""
    edge_index, num_nodes = graph
    matrix = np.zeros((num_nodes, num_nodes))
    np.add.at(matrix, tuple(edge_index.numpy()), 1)
    matrix /= np.maximum(matrix.sum(1, keepdims=True), 1)
    powers = [np.linalg.matrix_power(matrix, k).diagonal() for k in range(1, length + 1)]
    with patch.object(counting, "_DENSE_NODES", dense_nodes):
        features = cycle_features(edge_index, num_nodes, length, "walk")
    torch.testing.assert_close(features, torch.from_numpy(np.stack(powers, axis=1)), rtol=1e-12, atol=1e-15)


def test_walk_scale_is_precise_at_hubs():
    """Two hubs with 750 leaves each, which are merged."""
    leaves = torch.stack([torch.arange(2, 1502), torch.arange(2, 1502) % 2])
    edge_index = to_undirected(torch.cat([leaves, torch.tensor([[0], [1]])], dim=1))
    # A walk from a hub of degree 751 goes to a leaf, and back, or to the other hub, and comes back at once or stays.
    step = np.array([[0, 1 / 751, 750 / 751, 0], [1 / 751, 0, 0, 750 / 751], [1, 0, 0, 0], [0, 1, 0, 0]])
    hub = [np.linalg.matrix_power(step, k)[0, 0] for k in range(1, 7)]
    features = cycle_features(edge_index, 1502, 6, "walk")
    torch.testing.assert_close(features[0], torch.tensor(hub, dtype=torch.float64), rtol=1e-12, atol=0)


@given(awkward_graphs())
def test_scales_of_the_same_counts(graph):
    counts = cycle_counts(*graph, 5)
    assert torch.equal(cycle_features(*graph, 5, "counts"), counts)
    assert torch.equal(cycle_features(*graph, 5, "log"), torch.log1p(counts))


def test_log_is_the_default_and_ten_the_length():
    data = simple_graph(30)
    assert torch.equal(AddCycleCounts()(data).x, torch.log1p(cycle_counts(data.edge_index, 30, 10)).float())


def test_log_needs_no_exact_integers():
    complete = (torch.ones(100, 100) - torch.eye(100)).nonzero().t()
    features = AddCycleCounts(12, scale="log")(Data(edge_index=complete, num_nodes=100)).x
    torch.testing.assert_close(features[0, 11], torch.tensor((99**12 + 99) // 100, dtype=torch.float64).log1p().float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_features_come_first_and_keep_their_dtype(dtype):
    data = simple_graph(12)
    data.x = torch.randn(12, 3, dtype=dtype)
    x = AddCycleCounts(4, scale="counts")(data).x
    assert x.dtype == dtype
    assert torch.equal(x[:, :3], data.x)
    assert torch.equal(x[:, 3:], cycle_counts(data.edge_index, 12, 4).to(dtype))


def test_one_feature_per_node_is_a_column():
    data = simple_graph(12)
    data.x = torch.randn(12)
    assert torch.equal(AddCycleCounts(4)(data).x[:, 0], data.x)


def test_without_features_the_counts_are_the_features():
    x = AddCycleCounts(4, scale="counts")(simple_graph(12)).x
    assert x.dtype == torch.float32
    assert x.shape == (12, 4)


def test_the_graph_given_is_left_as_it_is():
    data = simple_graph(12)
    data.x = torch.randn(12, 3)
    before = data.clone()
    transformed = AddCycleCounts(4)(data)
    assert torch.equal(data.x, before.x)
    assert transformed.edge_index is data.edge_index


def test_a_batch_equals_its_graphs():
    graphs = [simple_graph(n) for n in (2, 7, 150, 30)]
    for scale in ("counts", "log", "walk"):
        transform = AddCycleCounts(6, scale=scale)
        alone = torch.cat([transform(graph).x for graph in graphs])
        torch.testing.assert_close(transform(Batch.from_data_list(graphs)).x, alone, rtol=1e-6, atol=1e-8)


def test_duplicates_count_twice_as_edges():
    path = coalesce(to_undirected(torch.tensor([[0, 1], [1, 2]])))
    doubled = Data(edge_index=torch.cat([path, path], dim=1), num_nodes=3)
    assert AddCycleCounts(2, scale="counts")(doubled).x.tolist() == [[0, 4], [0, 8], [0, 4]]


def test_whole_number_features_are_refused():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.tensor([[1], [2]]))
    with pytest.raises(ValueError, match=r"x has dtype torch.int64.*expected floating-point features.*data\.x\.float"):
        AddCycleCounts(2)(data)


def test_wrong_options_are_explained():
    with pytest.raises(ValueError, match="scale is 'sqrt', expected one of 'standardized', 'log', 'counts', 'walk'"):
        AddCycleCounts(scale="sqrt")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="length is 0, expected a whole number of at least 1"):
        AddCycleCounts(length=0)
    with pytest.raises(ValueError, match="has no edge_index"):
        AddCycleCounts()(Data(x=torch.ones(2, 1)))


def test_it_prints_as_it_is_made():
    assert repr(AddCycleCounts(length=4, scale="walk")) == "AddCycleCounts(length=4, scale='walk')"
