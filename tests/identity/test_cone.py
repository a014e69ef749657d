"""Cones: their rows, both distances and the edges between them, beside searches of the whole graph."""

import hypothesis.strategies as st
import torch
from hypothesis import given, settings
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph, contains, spread
from idgnn.identity.cone import Cone, changed_edges, cones, cut, edges_between, find_cone, join, row_bounds
from idgnn.identity.queries import as_queries
from tests.laws.graphs import as_pairs, graphs, queries

FAR = 10**6


def all_distances(edge_index: Tensor, size: int) -> Tensor:
    """d(a, b) by Floyd and Warshall."""
    distance = torch.full((size, size), FAR)
    distance[edge_index[0], edge_index[1]] = 1
    distance[torch.arange(size), torch.arange(size)] = 0
    for middle in range(size):
        distance = torch.minimum(distance, distance[:, middle, None] + distance[None, middle])
    return distance


@settings(max_examples=150, deadline=None)
@given(data=st.data(), num_layers=st.integers(1, 5), loops=st.booleans())
def test_rows_distances_edges_and_bounds(data, num_layers, loops):
    graph = data.draw(graphs(max_nodes=7))
    size = graph.num_nodes
    asked = data.draw(queries(size))
    questions = as_queries(asked, size, torch.device("cpu"))
    links = IndexedGraph(graph.edge_index, size, loops)
    chunk = find_cone(links, num_layers, questions)
    answer, there = chunk.find(questions)

    assert torch.equal(chunk.key, join(cones(IndexedGraph(graph.edge_index, size), num_layers, questions)).key)
    distance, pairs = all_distances(graph.edge_index, size), as_pairs(asked, size)
    color = chunk.key // size
    for row, (v, u) in enumerate(zip(color.tolist(), chunk.node.tolist(), strict=True)):
        assert chunk.arrival[row] == distance[v, u]
        assert chunk.remaining[row] == min(int(distance[u, r]) for r, other in pairs if other == v)
    assert there.tolist() == [bool(distance[v, r] <= num_layers) for r, v in pairs]
    assert chunk.key[answer[there]].tolist() == [v * size + r for r, v in pairs if distance[v, r] <= num_layers]

    changed = changed_edges(links, chunk)
    source, edge = changed.into.neighbor, changed.into.edge
    target = torch.repeat_interleave(changed.into.degree)
    assert torch.equal(source[changed.out.edge], torch.repeat_interleave(changed.out.degree))
    assert torch.equal(target[changed.out.edge], changed.out.neighbor)
    found = set(zip(source.tolist(), target.tolist(), edge.tolist(), strict=True))
    assert len(found) == source.numel()
    for step in range(num_layers):  # in each round, all edges from rows with a state before it to rows with one after
        before, after = own(chunk, step), own(chunk, step + 1)
        for s in before:
            for u in after:
                if color[s] == color[u]:
                    ends = chunk.node[s], chunk.node[u]
                    for number in links.find(*(end.view(1) for end in ends))[1].tolist():
                        assert (s, u, number) in found

    rows, between, into = row_bounds(links, num_layers, questions)
    assert chunk.key.numel() <= rows.sum()
    assert source.numel() <= between.sum()
    degree = links.into.degree[chunk.node]
    assert all(int(degree[color == v].sum()) <= into[questions.color == v].sum() for v in color.unique())


def own(cone: Cone, depth: int) -> set[int]:
    """The rows with a state of their own after `depth` rounds: the color has arrived and still matters."""
    return set(((cone.arrival <= depth) & (cone.remaining <= cone.num_layers - depth)).nonzero().flatten().tolist())


def test_cut():
    assert list(cut(torch.tensor([1, 2, 3, 9, 1, 1]), 5)) == [(0, 2), (2, 3), (3, 4), (4, 6)]
    assert list(cut(torch.tensor([]), 5)) == []


def of_keys(key: Tensor, size: int) -> Cone:
    return Cone(key, torch.zeros_like(key), torch.zeros_like(key), size, 1)


def plain_edges_between(edge_index: Tensor, keys: list[int], sources: set[int], targets: set[int], size: int) -> list:
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
def test_edges_between_rows(data):
    graph = data.draw(graphs(max_nodes=7))
    size = graph.num_nodes
    keys = sorted(data.draw(st.sets(st.integers(0, size * size - 1), max_size=30)))
    chosen = st.sets(st.sampled_from(range(len(keys)))) if keys else st.just(set())
    sources, targets = data.draw(chosen), data.draw(chosen)
    rows = of_keys(torch.tensor(keys, dtype=torch.long), size)
    ends = (torch.tensor(sorted(rows), dtype=torch.long) for rows in (sources, targets))
    found = sorted(
        zip(*(part.tolist() for part in edges_between(IndexedGraph(graph.edge_index, size), rows, *ends)), strict=True)
    )
    assert found == plain_edges_between(graph.edge_index, keys, sources, targets, size)


def test_every_node_has_one_self_loop():
    edge_index = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 2]])
    links = IndexedGraph(edge_index, 3, self_loops=True)
    pair, edge = links.find(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 1]))
    assert pair.tolist() == [0, 1, 2, 3]
    assert edge.tolist() == [4, 5, 6, 0]  # those of the graph itself give way to edge 4 + node


def test_edges_that_are_there_twice_are_found_twice():
    links = IndexedGraph(torch.tensor([[0, 0, 1], [1, 1, 0]]), 2)
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
    links = IndexedGraph(edge_index, size)
    key = torch.cat([leaves * size, leaves * size + leaves]).sort().values  # (0|leaf) and (leaf|leaf)
    looked_at = []
    monkeypatch.setattr(
        "idgnn.identity.cone.contains",
        lambda keys, wanted: looked_at.append(wanted.numel()) or contains(keys, wanted),
    )
    every = torch.arange(key.numel())
    source, target, _ = edges_between(links, of_keys(key, size), every, every)
    assert source.numel() == 2 * leaves.numel() and target.numel() == source.numel()
    assert sum(looked_at) <= 4 * size
