"""The edges between rows of one color, found from the cheaper end, are those that a look at all pairs finds."""

import hypothesis.strategies as st
import torch
from hypothesis import given, settings
from torch import Tensor

from idgnn.identity.lookup import Keys, Lookup, joined, spread
from tests.laws.graphs import graphs


def plain_joined(edge_index: Tensor, keys: list[int], sources: set[int], targets: set[int], size: int) -> list:
    found = []
    for source in sources:
        for target in targets:
            (v, s), (w, u) = divmod(keys[source], size), divmod(keys[target], size)
            if v == w:
                edges = ((edge_index[0] == s) & (edge_index[1] == u)).nonzero().flatten().tolist()
                found += [(source, target, edge) for edge in edges]
    return sorted(found)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_joined_rows(data):
    graph = data.draw(graphs(max_nodes=7))
    size = graph.num_nodes
    keys = sorted(data.draw(st.sets(st.integers(0, size * size - 1), max_size=30)))
    chosen = st.sets(st.sampled_from(range(len(keys)))) if keys else st.just(set())
    sources, targets = data.draw(chosen), data.draw(chosen)
    links = Lookup.of(graph.edge_index, size, self_loops=False)
    rows = Keys.of(torch.tensor(keys, dtype=torch.long), size)
    ends = (torch.tensor(sorted(rows), dtype=torch.long) for rows in (sources, targets))
    found = sorted(zip(*(part.tolist() for part in joined(links, rows, *ends)), strict=True))
    assert found == plain_joined(graph.edge_index, keys, sources, targets, size)


def test_every_node_has_one_self_loop():
    edge_index = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 2]])
    links = Lookup.of(edge_index, 3, self_loops=True)
    pair, edge = links.find(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 1]))
    assert pair.tolist() == [0, 1, 2, 3]
    assert edge.tolist() == [4, 5, 6, 0]  # those of the graph itself give way to edge 4 + node


def test_edges_that_are_there_twice_are_found_twice():
    links = Lookup.of(torch.tensor([[0, 0, 1], [1, 1, 0]]), 2, self_loops=False)
    pair, edge = links.find(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    assert pair.tolist() == [0, 1, 1]
    assert edge.tolist() == [2, 0, 1]


def test_spread():
    owner, number = spread(torch.tensor([5, 2, 9]), torch.tensor([2, 0, 3]))
    assert owner.tolist() == [0, 0, 2, 2, 2]
    assert number.tolist() == [5, 6, 9, 10, 11]


def test_a_hub_is_not_searched_edge_by_edge(monkeypatch):
    """A star: under the color of a leaf there are two rows, and the hub's edges are not gone through."""
    size = 1000
    leaves = torch.arange(1, size)
    edge_index = torch.stack([torch.cat([leaves, leaves * 0]), torch.cat([leaves * 0, leaves])])
    links = Lookup.of(edge_index, size, self_loops=False)
    key = torch.cat([leaves * size, leaves * size + leaves]).sort().values  # (0|leaf) and (leaf|leaf)
    looked_at = []
    monkeypatch.setattr(
        "idgnn.identity.lookup.contains",
        lambda keys, wanted: looked_at.append(wanted.numel()) or _contains(keys, wanted),
    )
    every = torch.arange(key.numel())
    source, target, _ = joined(links, Keys.of(key, size), every, every)
    assert source.numel() == 2 * leaves.numel() and target.numel() == source.numel()
    assert sum(looked_at) <= 4 * size


def _contains(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    from idgnn.identity.cone import contains

    return contains(keys, wanted)
