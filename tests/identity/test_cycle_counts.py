import sys
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from idgnn.identity import cycle_counts as counting
from idgnn.identity.cycle_counts import cycle_counts
from idgnn.identity.walks import columns as walk_columns
from idgnn.identity.walks import matrix as walk_matrix
from idgnn.identity.walks import progress as walk_progress
from tests.identity.plain_walks import awkward_graphs, plain_cycle_counts, plain_powers


def undirected(*edges):
    edge_index = torch.tensor(edges).t()
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)


def complete(num_nodes):
    return (torch.ones(num_nodes, num_nodes) - torch.eye(num_nodes)).nonzero().t()


def random_graph(num_nodes, num_edges):
    edge_index = torch.randint(num_nodes, (2, num_edges))
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)


@given(awkward_graphs(), st.integers(1, 7))
def test_equals_integer_matrix_powers(graph, length):
    assert torch.equal(cycle_counts(*graph, length), plain_cycle_counts(*graph, length))


# Without dense matrices, these budgets take one column, some columns or all columns at a time.
@settings(max_examples=150)
@given(awkward_graphs(), st.integers(1, 7), st.sampled_from([1, 300, 3_000, 30_000]))
def test_equals_integer_matrix_powers_in_any_memory(graph, length, memory):
    with patch.object(counting, "_DENSE_NODES", -1):
        assert torch.equal(cycle_counts(*graph, length, memory=memory), plain_cycle_counts(*graph, length))


@settings(max_examples=150)
@given(awkward_graphs(), st.integers(1, 7), st.sampled_from([1, 300, 2**30]))
def test_merging_twins_and_sorting_components_changes_nothing(graph, length, memory):
    with patch.object(counting, "_DENSE_NODES", -1), patch.object(walk_matrix, "_LARGE_BLOCK", 0):
        assert torch.equal(cycle_counts(*graph, length, memory=memory), plain_cycle_counts(*graph, length))


@given(st.lists(awkward_graphs(), min_size=1, max_size=6))
def test_a_batch_equals_its_graphs(graphs):
    batch = Batch.from_data_list([Data(edge_index=edge_index, num_nodes=n) for edge_index, n in graphs])
    with patch.object(counting, "_DENSE_NODES", -1):
        counts = cycle_counts(batch.edge_index, batch.num_nodes, 6)
    assert torch.equal(counts, torch.cat([cycle_counts(*graph, 6) for graph in graphs]))


def test_graphs_of_all_sizes_in_one_batch():
    graphs = [(random_graph(n, 2 * n), n) for n in (1, 3, 9, 17, 40, 3, 64, 130, 200, 1, 5)]
    batch = Batch.from_data_list([Data(edge_index=edge_index, num_nodes=n) for edge_index, n in graphs])
    one_by_one = torch.cat([cycle_counts(*graph, 7) for graph in graphs])
    for memory in (2**30, 10_000):
        assert torch.equal(cycle_counts(batch.edge_index, batch.num_nodes, 7, memory=memory), one_by_one)


def test_components_of_a_shuffled_batch_are_counted_separately():
    graphs = [Data(edge_index=random_graph(n, 2 * n), num_nodes=n) for n in (30, 60) * 15]
    batch = Batch.from_data_list(graphs)
    assert batch.num_nodes > walk_matrix._LARGE_BLOCK
    shuffled = torch.randperm(batch.num_nodes)
    every_node = torch.ones(batch.num_nodes, dtype=torch.bool)
    rows_of_blocks = walk_matrix.walk_graph(shuffled[batch.edge_index], batch.num_nodes, every_node).block_ptr.diff()
    assert rows_of_blocks.max() <= 60
    counts = cycle_counts(shuffled[batch.edge_index], batch.num_nodes, 6)
    assert torch.equal(counts[shuffled], cycle_counts(batch.edge_index, batch.num_nodes, 6))


@pytest.mark.parametrize("one_way", [False, True])
def test_large_graph_with_hubs_equals_a_dense_product(one_way):
    num_nodes = 1200
    hubs = torch.stack([torch.arange(3, 803), torch.arange(3, 803) % 3])  # 800 leaves on three hubs
    edge_index = torch.cat([hubs, hubs.flip(0), random_graph(num_nodes, 900)], dim=1)
    if one_way:
        edge_index = torch.cat([edge_index, torch.randint(num_nodes, (2, 500))], dim=1)
    matrix = np.zeros((num_nodes, num_nodes))  # float64 is exact here: the largest count is below 2^53
    np.add.at(matrix, tuple(edge_index.numpy()), 1)
    power, expected = np.eye(num_nodes), []
    for _ in range(6):
        power = power @ matrix
        expected.append(power.diagonal())
    counts = cycle_counts(edge_index, num_nodes, 6, memory=2_000_000)
    assert power.max() < 2**53
    assert torch.equal(counts, torch.from_numpy(np.stack(expected, axis=1)))


def test_exact_beyond_float32():
    """Counts from below 2^24 to just below 2^53, in powers and in sums."""
    edge_index, num_nodes, length = complete(30), 30, 11
    expected = plain_cycle_counts(edge_index, num_nodes, length)
    assert 2**48 < expected.max() < 2**53
    for dense_nodes in (-1, 128):
        with patch.object(counting, "_DENSE_NODES", dense_nodes):
            assert torch.equal(cycle_counts(edge_index, num_nodes, length), expected)


@pytest.mark.parametrize("leaves", [1, 3])
def test_exact_with_parallel_edges_and_twins(leaves):
    """A^5 passes 2^24 because of the parallel edges, and sooner because of the twins."""
    edge_index = undirected(*[(0, leaf) for leaf in range(1, leaves + 1)]).repeat(1, 29 if leaves == 1 else 19)
    passed = plain_powers(edge_index, leaves + 1, 5)[4, 0, 1]
    assert passed > 2**24 and passed % 2 == 1  # float32 would be off by one
    with patch.object(counting, "_DENSE_NODES", -1), patch.object(walk_matrix, "_LARGE_BLOCK", 0):
        counts = cycle_counts(edge_index, leaves + 1, 10)
    assert torch.equal(counts, plain_cycle_counts(edge_index, leaves + 1, 10))


def test_exact_in_a_batch_with_twins_of_different_numbers():
    graphs = []
    for left, right in ((6, 9), (2, 30), (17, 5), (1, 1)):
        edges = torch.cartesian_prod(torch.arange(left), left + torch.arange(right)).t()
        graphs.append((torch.cat([edges, edges.flip(0)], dim=1), left + right))
    batch = Batch.from_data_list([Data(edge_index=edge_index, num_nodes=n) for edge_index, n in graphs])
    with patch.object(counting, "_DENSE_NODES", -1), patch.object(walk_matrix, "_LARGE_BLOCK", 0):
        counts = cycle_counts(batch.edge_index, batch.num_nodes, 12)
    assert torch.equal(counts, torch.cat([plain_cycle_counts(*graph, 12) for graph in graphs]))


def test_a_hub_beside_small_graphs_keeps_all_exact():
    star = undirected(*[(0, leaf) for leaf in range(1, 50)])
    edge_index = torch.cat([star, complete(20) + 50, undirected((70, 71), (71, 71))], dim=1)
    with patch.object(counting, "_DENSE_NODES", -1):
        assert torch.equal(cycle_counts(edge_index, 72, 9), plain_cycle_counts(edge_index, 72, 9))


def test_permuting_the_nodes_permutes_the_counts():
    edge_index, num_nodes = random_graph(150, 400), 150
    order = torch.randperm(num_nodes)
    assert torch.equal(cycle_counts(order[edge_index], num_nodes, 8)[order], cycle_counts(edge_index, num_nodes, 8))


@pytest.mark.parametrize("dense_nodes", [-1, 128])
def test_warns_where_counts_pass_the_exact_integers(dense_nodes):
    edge_index, num_nodes, length = complete(100), 100, 10
    # The counts of all nodes of a complete graph are equal: ((n-1)^k + (n-1) (-1)^k) / n.
    exact = [(99**k + 99 * (-1) ** k) // 100 for k in range(1, length + 1)]
    last = max(k for k in range(1, length + 1) if exact[k - 1] < 2**53)
    rounded = sum(count >= 2**53 for count in exact) * num_nodes
    with (
        patch.object(counting, "_DENSE_NODES", dense_nodes),
        pytest.warns(UserWarning, match=rf"{rounded} of 1000 closed-walk counts reach 2\^53.* up to length {last}\."),
    ):
        counts = cycle_counts(edge_index, num_nodes, length)
    assert torch.equal(counts[:, :last], torch.tensor(exact[:last], dtype=torch.float64).expand(num_nodes, last))
    torch.testing.assert_close(counts[0], torch.tensor(exact, dtype=torch.float64), rtol=1e-15, atol=0)


def test_counts_beyond_float64_are_refused():
    largest = sys.float_info.max
    first = next(k for k in range(1, 200) if (99**k + 99 * (-1) ** k) // 100 > largest)
    with pytest.raises(
        ValueError, match=rf"pass 1\.8e308.*at length {first}: expected a length of at most {first - 1}"
    ):
        cycle_counts(complete(100), 100, 170)


def test_memory_bounds_the_state():
    """A chunk holds no more numbers than the budget has room for, and padding does not break it."""
    edge_index, num_nodes = random_graph(500, 1500), 500
    graph = walk_matrix.walk_graph(edge_index, num_nodes, torch.ones(num_nodes, dtype=torch.bool))
    for numbers in (1, 499, 500, 7_000, 60_000, 10**6):
        for chunk in walk_columns.chunks(graph, memory=40 * numbers, bytes_per_number=40):
            rows = chunk.stop - chunk.start
            assert rows * chunk.width <= max(numbers, rows)


def test_progress_is_shown_only_when_asked_for(capsys):
    edge_index = random_graph(200, 400)
    silent = cycle_counts(edge_index, 200, 4)
    assert capsys.readouterr() == ("", "")
    with patch.object(walk_columns, "_NUMBERS_ON_CPU", 1000), patch.object(walk_progress, "_SECONDS", 0.0):
        assert torch.equal(cycle_counts(edge_index, 200, 4, progress=True), silent)
    assert "closed walks: " in capsys.readouterr().err


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("num_nodes", [100, 3000])
def test_a_gpu_counts_the_same(num_nodes):
    edge_index = torch.cat([random_graph(num_nodes, 3 * num_nodes), torch.randint(num_nodes, (2, num_nodes))], dim=1)
    for edges in (edge_index, random_graph(num_nodes, 3 * num_nodes)):
        counts = cycle_counts(edges.cuda(), num_nodes, 9)
        assert counts.is_cuda
        assert torch.equal(counts.cpu(), cycle_counts(edges, num_nodes, 9))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(3, 2, dtype=torch.long), 3, 2), r"edge_index has shape \[3, 2\], expected \[2, num_edges\]"),
        ((torch.zeros(2, 2), 3, 2), "edge_index has dtype torch.float32, expected whole numbers"),
        ((torch.tensor([[0], [3]]), 3, 2), "names node 3, but the graph has 3 nodes"),
        ((torch.tensor([[0], [1]]), 3, 0), "length is 0, expected a whole number of at least 1"),
        ((torch.tensor([[0], [1]]), 3, 2.5), "length is 2.5, expected a whole number of at least 1"),
        ((torch.zeros(2, 0, dtype=torch.long), -1, 2), "num_nodes is -1, expected a whole number of at least 0"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        cycle_counts(*arguments)


def test_no_memory_is_explained():
    with pytest.raises(ValueError, match="memory is 0, expected a whole number of at least 1"):
        cycle_counts(torch.tensor([[0], [1]]), 2, 2, memory=0)
