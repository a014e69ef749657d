from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from idgnn.identity.cycle_counts import cycle_counts
from idgnn.identity.walk_counts import walk_counts
from idgnn.identity.walks import columns as walk_columns
from idgnn.identity.walks import matrix as walk_matrix
from idgnn.identity.walks import progress as walk_progress
from tests.identity.plain_walks import awkward_graphs, plain_powers


def plain_walk_counts(edge_index, num_nodes, pairs, length):
    powers = plain_powers(edge_index, num_nodes, length)
    return torch.tensor([[int(power[u, v]) for power in powers] for u, v in pairs.t().tolist()], dtype=torch.float64)


@st.composite
def graphs_with_pairs(draw):
    edge_index, num_nodes = draw(awkward_graphs(min_nodes=1))
    # Few first nodes and many second ones, or the other way round: the counts run from the end with fewer.
    few, many = st.integers(0, min(1, num_nodes - 1)), st.integers(0, num_nodes - 1)
    pair = draw(st.sampled_from([st.tuples(few, many), st.tuples(many, few), st.tuples(many, many)]))
    pairs = torch.tensor(draw(st.lists(pair, min_size=1, max_size=20))).t()
    return edge_index, num_nodes, pairs


@settings(max_examples=150)
@given(graphs_with_pairs(), st.integers(1, 6), st.sampled_from([1, 300, 3_000, 2**30]))
def test_equals_integer_matrix_powers(graph, length, memory):
    assert torch.equal(walk_counts(*graph, length, memory=memory), plain_walk_counts(*graph, length))


@settings(max_examples=150)
@given(graphs_with_pairs(), st.integers(1, 6), st.sampled_from([1, 2**30]))
def test_merging_twins_and_sorting_components_changes_nothing(graph, length, memory):
    with patch.object(walk_matrix, "_LARGE_BLOCK", 0):
        assert torch.equal(walk_counts(*graph, length, memory=memory), plain_walk_counts(*graph, length))


@given(graphs_with_pairs())
def test_lemma_1_a_colored_node_is_seen_along_the_messages(graph):
    """The messages of the proof of Lemma 1: h_u^1 = [number of edges v -> u], h_u^(k+1) = sum of [1(w = v), h_w^k]."""
    edge_index, num_nodes, pairs = graph
    source, target = edge_index
    length = 4
    seen = torch.zeros(pairs.size(1), length, dtype=torch.float64)
    for column, (u, v) in enumerate(pairs.t().tolist()):
        h = torch.zeros(num_nodes, 0, dtype=torch.float64)
        colored = torch.zeros(num_nodes, 1, dtype=torch.float64)
        colored[v] = 1
        for _ in range(length):
            message = torch.cat([colored, h], dim=1)[source]
            h = torch.zeros(num_nodes, message.size(1), dtype=torch.float64).index_add(0, target, message)
        seen[column] = h[u]
    assert torch.equal(walk_counts(edge_index, num_nodes, pairs.flip(0), length), seen)


def test_one_way_edges_are_walked_one_way():
    one_way = torch.tensor([[0, 1], [1, 2]])
    pairs = torch.tensor([[0, 2], [2, 0]])
    assert walk_counts(one_way, 3, pairs, 3).tolist() == [[0, 1, 0], [0, 0, 0]]


@given(awkward_graphs(min_nodes=1), st.integers(1, 7))
def test_a_node_paired_with_itself_has_its_cycle_counts(graph, length):
    every_node = torch.arange(graph[1]).expand(2, -1)
    assert torch.equal(walk_counts(*graph, every_node, length), cycle_counts(*graph, length))


def test_a_batch_equals_its_graphs():
    graphs = [
        Data(edge_index=torch.randint(n, (2, 3 * n)), num_nodes=n, pair_index=torch.randint(n, (2, 50)))
        for n in (1, 5, 33, 9, 70)
    ]
    batch = Batch.from_data_list(graphs)  # names that end in index are shifted like edge_index
    for memory in (2**30, 5_000):
        counts = walk_counts(batch.edge_index, batch.num_nodes, batch.pair_index, 6, memory=memory)
        alone = [walk_counts(g.edge_index, g.num_nodes, g.pair_index, 6) for g in graphs]
        assert torch.equal(counts, torch.cat(alone))


def test_a_few_pairs_of_a_large_graph():
    edge_index = torch.randint(3000, (2, 9000))
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    pairs = torch.randint(3000, (2, 40))
    power = torch.eye(3000, dtype=torch.float64)[:, pairs[1]]
    expected = []
    for _ in range(5):
        power = torch.zeros_like(power).index_add(0, edge_index[0], power[edge_index[1]])
        expected.append(power[pairs[0], torch.arange(40)])
    assert torch.equal(walk_counts(edge_index, 3000, pairs, 5), torch.stack(expected, dim=1))


def test_warns_where_counts_pass_the_exact_integers():
    complete = (torch.ones(100, 100) - torch.eye(100)).nonzero().t()
    exact = [(99**k - (-1) ** k) // 100 for k in range(1, 12)]
    last = max(k for k in range(1, 12) if exact[k - 1] < 2**53)
    with pytest.warns(UserWarning, match=rf"{11 - last} of 11 walk counts reach 2\^53.* up to length {last}\."):
        counts = walk_counts(complete, 100, torch.tensor([[3], [7]]), 11)
    assert counts[0, :last].tolist() == exact[:last]


def test_progress_is_shown_only_when_asked_for(capsys):
    edge_index, pairs = torch.randint(20, (2, 60)), torch.randint(20, (2, 5))
    silent = walk_counts(edge_index, 20, pairs, 4)
    assert capsys.readouterr() == ("", "")
    with (
        patch.object(walk_columns, "_NUMBERS_ON_CPU", 10),
        patch.object(walk_columns, "_COLUMNS_ON_CPU", 1),
        patch.object(walk_progress, "_SECONDS", 0.0),
    ):
        assert torch.equal(walk_counts(edge_index, 20, pairs, 4, progress=True), silent)
    assert "walks: " in capsys.readouterr().err


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_counts_the_same():
    edge_index, pairs = torch.randint(3000, (2, 9000)), torch.randint(3000, (2, 500))
    counts = walk_counts(edge_index.cuda(), 3000, pairs.cuda(), 8)
    assert counts.is_cuda
    assert torch.equal(counts.cpu(), walk_counts(edge_index, 3000, pairs, 8))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (torch.tensor([[0, 1, 1]]), r"the query pairs have shape \[1, 3\], expected"),
        (torch.tensor([[0], [5]]), "name node 5, but the graph has 3 nodes"),
        (torch.zeros(2, 0, dtype=torch.long), "no query pairs were given"),
    ],
)
def test_wrong_pairs_are_explained(pairs, message):
    with pytest.raises(ValueError, match=message):
        walk_counts(torch.tensor([[0], [1]]), 3, pairs, 2)


def test_a_wrong_length_is_explained():
    with pytest.raises(ValueError, match="length is True, expected a whole number of at least 1"):
        walk_counts(torch.tensor([[0], [1]]), 3, torch.tensor([[0], [1]]), True)
