"""How many rows queries with two colors have: counted, or bounded without a search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.queries import Queries
from idgnn.identity.two_colors import colored_pairs, pair_states, with_first_alone, with_second_alone


@dataclass(frozen=True)
class RowCounts:
    """How many rows there are, and messages into them."""

    rows: int
    edges: int


def count_rows(graph: IndexedGraph, num_layers: int, queries: Queries, exchange: bool) -> Iterator[RowCounts]:
    """The rows of queries with two colors, counted after each part of the pairs; the last count is that of all.

    If messages are exchanged, a row of a pair receives at most one from each state of the pair that a color changes.
    Only the rows under one color are kept in the meantime, which pairs share.
    """
    num_nodes, pair = graph.num_nodes, colored_pairs(queries, graph.num_nodes)
    alone = (with_alone(graph, num_layers, queries).key for with_alone in (with_first_alone, with_second_alone))
    one = torch.unique(torch.cat(list(alone)))
    rows, edges = 0, 0

    def counts() -> RowCounts:
        shared = int(graph.into.degree_of(one % max(num_nodes, 1)).sum())
        return RowCounts(rows + one.numel(), edges + shared)

    yield counts()
    for states in pair_states(graph, num_layers, queries, pair):
        node, number, both = states.key % num_nodes, states.key // num_nodes, states.both
        received = graph.into.degree_of(node[both])
        if exchange:
            place = number - number[0]
            received = torch.minimum(received, torch.bincount(place)[place[both]])
        rows, edges = rows + received.numel(), edges + int(received.sum())
        nearer, other = states.first < states.second, states.second < states.first
        found = (pair[number[nearer]] // num_nodes) * num_nodes + node[nearer]
        farther = (num_nodes + pair[number[other]] % num_nodes) * num_nodes + node[other]
        one = torch.unique(torch.cat([one, found, farther]))
        yield counts()


def two_color_bound(queries: Queries, ahead: Tensor, behind: Tensor) -> Tensor:
    """At most the sum over the rows of each query alone, from sums over the walks that lead from and to each node.

    A color has as many rows as walks lead from it or to the node that is read; a state that both colors change has two
    rows, one of which is under the nearer color.
    """
    assert queries.second is not None
    total = torch.zeros_like(behind[:1]).expand(queries.node.numel())
    for color in (queries.color, queries.second):
        there = color >= 0
        total = total + there * (ahead[color.clamp(min=0)] + behind[queries.node])
    return total


def two_color_bounds(graph: IndexedGraph, num_layers: int, queries: Queries) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`idgnn.identity.cone.row_bounds` of queries with two colors."""
    ahead, behind = num_layers // 2, (num_layers - 1) // 2
    into, listed = graph.into.degree, graph.ascending[0].degree + graph.ascending[1].degree

    def bound(values: Tensor) -> Tensor:
        walks = graph.out.walk_sums(values, ahead), graph.into.walk_sums(values, behind)
        return two_color_bound(queries, *walks)

    rows = bound(torch.ones_like(into)).clamp(max=2 * max(graph.num_nodes, 1))
    return rows, bound(listed), bound(into).clamp(max=2 * graph.into.edge.numel())
