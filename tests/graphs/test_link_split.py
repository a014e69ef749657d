from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from idgnn.graphs.dataset import checksum
from idgnn.graphs.link_pairs import link_split
from idgnn.graphs.synthetic import random_regular
from tests.graphs.awkward_graphs import AWKWARD, any_graph, graph


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
@pytest.mark.parametrize("number", range(len(AWKWARD)))
def test_awkward_graphs(number: int, directed: bool) -> None:
    check_laws(AWKWARD[number].clone(), 0.5, 0, directed)


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
        link_split(AWKWARD[4], 1.5)
