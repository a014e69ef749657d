from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from idgnn.graphs.dataset import checksum
from idgnn.graphs.link_pairs import link_split, negative_pairs
from idgnn.graphs.synthetic import random_regular
from tests.graphs.corner_cases import CORNER_CASES, any_graph, graph


def pairs(edge_index: torch.Tensor) -> list[tuple[int, int]]:
    return list(map(tuple, edge_index.t().tolist()))


def check_laws(data: Data, fraction: float, seed: int, directed: bool) -> None:
    # The attribute of an edge is its ends and its number, so it can be seen whether it followed.
    number = torch.arange(data.num_edges)
    data.edge_attr = torch.cat([data.edge_index.t(), number.view(-1, 1)], dim=1)
    data.edge_weight = number.double()
    before = checksum([data])
    split = link_split(data, fraction, seed, directed)
    assert checksum([data]) == before
    messages, positives, known = map(pairs, (split.edge_index, split.edge_label_index, split.known_edge_index))
    edges = pairs(data.edge_index)

    # No leak: no positive is a message, in either direction.
    unordered = {frozenset(pair) for pair in messages}
    assert not unordered & {frozenset(pair) for pair in positives}
    # Nothing is lost: an edge is a message as often as it was there, or a positive.
    assert all(messages.count(edge) == edges.count(edge) or edge in positives for edge in edges)
    assert not Counter(messages) - Counter(edges)
    assert [loop for loop in messages if loop[0] == loop[1]] == [loop for loop in edges if loop[0] == loop[1]]
    # Both directions, each once.
    both = set(edges) if directed else set(edges) | {(v, u) for u, v in edges}
    assert sorted(known) == sorted(both) and set(positives) <= both
    assert len(set(positives)) == len(positives)
    assert directed or {(v, u) for u, v in positives} == set(positives)
    # As many as asked for, counted in joined pairs.
    joined = {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    assert abs(len({frozenset(pair) for pair in positives}) - fraction * len(joined)) <= 0.5
    # What belongs to an edge stays with it.
    assert split.edge_attr[:, :2].tolist() == [list(pair) for pair in messages]
    assert split.edge_attr[:, 2].tolist() == split.edge_weight.tolist()


@given(any_graph(), st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 5), st.booleans())
def test_no_positive_is_a_message(data: Data, fraction: float, seed: int, directed: bool) -> None:
    check_laws(data, fraction, seed, directed)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("number", range(len(CORNER_CASES)))
def test_corner_cases(number: int, directed: bool) -> None:
    check_laws(CORNER_CASES[number].clone(), 0.5, 0, directed)


def test_a_single_edge_carries_messages() -> None:
    split = link_split(graph(2, [(0, 1), (1, 0)]))
    assert split.edge_index.size(1) == 2 and split.edge_label_index.size(1) == 0


def test_a_fifth_of_the_edges_by_default_and_the_seed_decides() -> None:
    (data,) = random_regular(1, 40, 5)
    split = link_split(data)
    assert split.edge_index.size(1) == 160 and split.edge_label_index.size(1) == 40
    assert checksum([split]) == checksum([link_split(data, seed=0)]) != checksum([link_split(data, seed=1)])
    assert torch.equal(split.x, data.x)


def test_a_generator_draws_differently_for_each_graph() -> None:
    (data,) = random_regular(1, 40, 5)
    generator = torch.Generator().manual_seed(0)
    first, second = link_split(data, seed=generator), link_split(data, seed=generator)
    assert checksum([first]) == checksum([link_split(data, seed=0)]) != checksum([second])


def test_a_batch_keeps_the_graphs_apart() -> None:
    graphs = random_regular(3, 10, 3)
    splits = [link_split(data) for data in graphs]
    batch = Batch.from_data_list(splits)
    for name in ("edge_label_index", "known_edge_index"):
        expected = torch.cat([split[name] + 10 * number for number, split in enumerate(splits)], dim=1)
        assert torch.equal(batch[name], expected)


def test_labels_of_another_task_are_replaced() -> None:
    data = graph(3, [(0, 1), (1, 0), (1, 2), (2, 1)])
    data.edge_label_index = torch.tensor([[0, 1, 2, 0], [0, 0, 0, 0]])
    assert link_split(data, 0.5).edge_label_index.size(1) == 2


def test_fractions_beyond_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"fraction is 1\.5, expected a number between 0 and 1"):
        link_split(CORNER_CASES[4], 1.5)


def allowed(data: Data, first: int = 0) -> list[tuple[int, int]]:
    """All ordered pairs that are not edges, one by one."""
    edges = set(map(tuple, data.edge_index.t().tolist()))
    nodes = range(data.num_nodes or 0)
    return [(u + first, v + first) for u in nodes for v in nodes if u != v and (u, v) not in edges]


def stack(graphs: list[Data]) -> tuple[torch.Tensor, torch.Tensor]:
    ptr = torch.tensor([0, *(data.num_nodes for data in graphs)]).cumsum(0)
    edges = [data.edge_index + first for data, first in zip(graphs, ptr.tolist(), strict=False)]
    return torch.cat([torch.empty(2, 0, dtype=torch.long), *edges], dim=1), ptr


@given(st.lists(any_graph(max_nodes=5), max_size=5), st.integers(0, 9))
def test_only_pairs_of_one_graph_that_are_no_edges(graphs: list[Data], seed: int) -> None:
    edge_index, ptr = stack(graphs)
    counts = torch.arange(len(graphs)) + 1
    pairs, given_ = negative_pairs(edge_index, ptr, counts, torch.Generator().manual_seed(seed))
    cells = [allowed(data, first) for data, first in zip(graphs, ptr.tolist(), strict=False)]
    assert given_.tolist() == [count if cell else 0 for count, cell in zip(counts.tolist(), cells, strict=True)]
    for found, cell in zip(pairs.split(given_.tolist(), dim=1), cells, strict=True):
        assert set(map(tuple, found.t().tolist())) <= set(cell)


def test_uniform_over_all_allowed_pairs_of_each_graph() -> None:
    edge_index, ptr = stack(CORNER_CASES)
    each = 5000
    pairs, counts = negative_pairs(
        edge_index, ptr, torch.full((len(CORNER_CASES),), each), torch.Generator().manual_seed(1)
    )
    chi_square, freedom = 0.0, 0
    for data, first, found in zip(CORNER_CASES, ptr.tolist(), pairs.split(counts.tolist(), dim=1), strict=False):
        cells = allowed(data, first)
        drawn = list(map(tuple, found.t().tolist()))
        if cells:
            expected = each / len(cells)
            chi_square += sum((drawn.count(cell) - expected) ** 2 / expected for cell in cells)
            freedom += len(cells) - 1
    # Mean `freedom`, variance 2 * freedom: four standard deviations.
    assert freedom > 50 and abs(chi_square - freedom) < 4 * (2 * freedom) ** 0.5


def test_the_ends_of_a_batch_and_no_counts() -> None:
    batch = Batch.from_data_list([CORNER_CASES[5], CORNER_CASES[6]])
    pairs, counts = negative_pairs(batch.edge_index, batch.ptr, torch.tensor([0, 3]), torch.Generator())
    assert counts.tolist() == [0, 3] and (pairs >= 4).all()


def test_pairs_depend_on_the_generator_only() -> None:
    edge_index, ptr = stack(CORNER_CASES)
    counts = torch.full((len(CORNER_CASES),), 20)
    draws = [negative_pairs(edge_index, ptr, counts, torch.Generator().manual_seed(seed))[0] for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])


def test_the_order_and_repetition_of_edges_do_not_matter() -> None:
    edge_index, ptr = stack(CORNER_CASES)
    counts = torch.full((len(CORNER_CASES),), 20)
    repeated = torch.cat([edge_index.flip(1), edge_index], dim=1)
    first, second = (negative_pairs(each, ptr, counts, torch.Generator())[0] for each in (edge_index, repeated))
    assert torch.equal(first, second)


def test_a_large_sparse_graph_needs_no_dense_matrix() -> None:
    num_nodes = 1_000_000
    path = torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])
    pairs, counts = negative_pairs(path, torch.tensor([0, num_nodes]), torch.tensor([1000]), torch.Generator())
    assert counts.tolist() == [1000] and not ((pairs[1] - pairs[0] == 1) | (pairs[0] == pairs[1])).any()
    assert pairs.max() > 0.99 * num_nodes and pairs.min() < 0.01 * num_nodes


def test_edges_between_graphs_and_wrong_counts_are_refused() -> None:
    ptr = torch.tensor([0, 2, 4])
    with pytest.raises(ValueError, match="some edges do not lie within one graph"):
        negative_pairs(torch.tensor([[1], [2]]), ptr, torch.tensor([1, 1]), torch.Generator())
    with pytest.raises(ValueError, match="some edges do not lie within one graph"):
        negative_pairs(torch.tensor([[4], [4]]), ptr, torch.tensor([1, 1]), torch.Generator())
    with pytest.raises(ValueError, match="counts has 1 entries for 2 graphs"):
        negative_pairs(torch.tensor([[0], [1]]), ptr, torch.tensor([1]), torch.Generator())
