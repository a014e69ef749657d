"""Cones: their rows, both distances and the edges between them, beside searches of the whole graph."""

import hypothesis.strategies as st
import torch
from hypothesis import given, settings
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph, find_among, spread
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
                    for number in edges_from(links, int(chunk.node[s]), int(chunk.node[u])):
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


def edges_from(links: IndexedGraph, source: int, target: int) -> list[int]:
    """The ids of the edges from one node to another, from the lists of in-neighbors."""
    first, last = links.into.ptr[target : target + 2].tolist()
    return links.into.edge[first:last][links.into.neighbor[first:last] == source].tolist()


def plain_edges_between(links: IndexedGraph, keys: list[int]) -> list:
    found = []
    for source, (v, s) in enumerate(divmod(key, links.num_nodes) for key in keys):
        for target, (w, u) in enumerate(divmod(key, links.num_nodes) for key in keys):
            found += [(source, target, edge) for edge in edges_from(links, s, u) if v == w]
    return sorted(found)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), loops=st.booleans())
def test_edges_between_rows(data, loops):
    graph = data.draw(graphs(max_nodes=7))
    size = graph.num_nodes
    keys = sorted(data.draw(st.sets(st.integers(0, size * size - 1), max_size=30)))
    links, rows = IndexedGraph(graph.edge_index, size, loops), of_keys(torch.tensor(keys, dtype=torch.long), size)
    found = sorted(zip(*(part.tolist() for part in edges_between(links, rows)), strict=True))
    assert found == plain_edges_between(links, keys)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_reverses(data):
    """Every edge has one partner, which leads back; with edges that have none, there are no pairs."""
    graph = data.draw(graphs(max_nodes=5))
    links, ends = (
        IndexedGraph(graph.edge_index, graph.num_nodes),
        [tuple(each) for each in graph.edge_index.t().tolist()],
    )
    assert links.symmetric == all((u, s) in ends for s, u in ends)
    assert (links.reverse is not None) == all(ends.count((u, s)) == ends.count((s, u)) for s, u in ends)
    if links.reverse is not None:
        assert [ends[each] for each in links.reverse.tolist()] == [(u, s) for s, u in ends]
        assert links.reverse.sort().values.tolist() == list(range(len(ends)))


@settings(max_examples=100, deadline=None)
@given(
    keys=st.sets(st.integers(0, 40)), wanted=st.lists(st.integers(0, 40)), scale=st.sampled_from([1, 2**20, 2**52 + 1])
)
def test_find_among(keys, wanted, scale):
    found, place = find_among(torch.tensor(sorted(keys)).long() * scale, torch.tensor(wanted).long() * scale)
    assert found.tolist() == [i for i, key in enumerate(wanted) if key in keys]
    assert place.tolist() == [sorted(keys).index(key) for key in wanted if key in keys]


def test_every_node_has_one_self_loop():
    edge_index = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 2]])
    links = IndexedGraph(edge_index, 3, self_loops=True)
    assert [edges_from(links, *ends) for ends in ((0, 0), (1, 1), (2, 2), (0, 1))] == [[4], [5], [6], [0]]


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
        "idgnn.identity.cone.find_among",
        lambda keys, wanted: looked_at.append(wanted.numel()) or find_among(keys, wanted),
    )
    source, target, _ = edges_between(links, of_keys(key, size))
    assert source.numel() == 2 * leaves.numel() and target.numel() == source.numel()
    assert sum(looked_at) <= 4 * size
