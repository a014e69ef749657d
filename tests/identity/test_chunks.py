"""The rows of a chunk, their two distances and the edges between them, beside searches of the whole graph."""

import hypothesis.strategies as st
import torch
from hypothesis import given, settings
from torch import Tensor

from idgnn.identity.adjacency import Links
from idgnn.identity.chunks import chunk_of, cut, edges_of_chunk, row_bounds
from idgnn.identity.cone import cones, join
from idgnn.identity.lookup import Lookup
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
    links = Lookup.of(graph.edge_index, size, loops)
    chunk, there = chunk_of(links, num_layers, questions)

    assert torch.equal(chunk.rows.key, join(cones(Links.of(graph.edge_index, size), num_layers, questions)).key)
    distance, pairs = all_distances(graph.edge_index, size), as_pairs(asked, size)
    color = chunk.rows.key // size
    for row, (v, u) in enumerate(zip(color.tolist(), chunk.rows.node.tolist(), strict=True)):
        assert chunk.arrival[row] == distance[v, u]
        assert chunk.remaining[row] == min(int(distance[u, r]) for r, other in pairs if other == v)
    assert there.tolist() == [bool(distance[v, r] <= num_layers) for r, v in pairs]
    assert chunk.rows.key[chunk.answer].tolist() == [v * size + r for r, v in pairs if distance[v, r] <= num_layers]

    source, target, edge = edges_of_chunk(links, chunk)
    assert target.tolist() == sorted(target.tolist())
    found = set(zip(source.tolist(), target.tolist(), edge.tolist(), strict=True))
    assert len(found) == source.numel()
    for step in range(num_layers):  # in each round, all edges from rows with a state before it to rows with one after
        before, after = set(chunk.own(step).tolist()), set(chunk.own(step + 1).tolist())
        for s in before:
            for u in after:
                if color[s] == color[u]:
                    ends = chunk.rows.node[s], chunk.rows.node[u]
                    for number in links.find(*(end.view(1) for end in ends))[1].tolist():
                        assert (s, u, number) in found

    rows, between, into = row_bounds(links, num_layers, questions)
    assert chunk.rows.key.numel() <= rows.sum()
    assert source.numel() <= between.sum()
    degree = links.into.degree[chunk.rows.node]
    assert all(int(degree[color == v].sum()) <= into[questions.color == v].sum() for v in color.unique())


def test_cut():
    assert list(cut(torch.tensor([1, 2, 3, 9, 1, 1]), 5)) == [(0, 2), (2, 3), (3, 4), (4, 6)]
    assert list(cut(torch.tensor([]), 5)) == []
