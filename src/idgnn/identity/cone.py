r"""Which states need a row of their own, and which edges join such rows.

The answer to "embedding of `r` when `v` is colored" after `K` rounds depends on the colored state of `u` only if
`u` lies on a route `v -> u -> r` of at most `K` message steps. With all queries `r` of one color `v` taken together,

.. math:: U(v) = \{\, u : d(v, u) + \min_{r \in Q(v)} d(u, r) \le K \,\},

the *cone* of `v`. The first half of such a route lies in the ball of radius `floor(K / 2)` that the color reaches,
the second half in the ball of radius `floor((K - 1) / 2)` from which a query is reached: two small balls instead of
one of radius `K`, found by two searches that are then continued towards each other. Everything here works on rows
`(u|v)`, written as one number `color * num_nodes + node`.

A row of a hub has all of the hub's edges, but few of them come from rows of the same color. Each edge is looked for
from its end of lower degree: for a star of n nodes that is about n look-ups in place of n^2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from idgnn.identity.adjacency import (
    Adjacency,
    IndexedGraph,
    contains,
    find_among,
    group_edges,
    groups,
)
from idgnn.identity.queries import Queries

# Neighbors looked at in one go: 2^21 of them take about a hundred MB of index tensors while a part is worked on.
CHUNK = 2**21


@dataclass(frozen=True)
class Cone:
    """The rows `(u|v)` of some queries, sorted by color, then node, with both distances."""

    key: Tensor  # [rows] color * num_nodes + node
    arrival: Tensor  # [rows] d(v, u): the round after which the color has arrived
    remaining: Tensor  # [rows] the least d(u, r) over the queries r of the color v
    num_nodes: int
    num_layers: int

    @cached_property
    def node(self) -> Tensor:
        """The node that each row is a copy of `[rows]`."""
        return self.key % max(self.num_nodes, 1)

    @property
    def colored(self) -> Tensor:
        """Whether each row is `(v|v)` `[rows]`; where there are two colors, its color 0, 1 or 2."""
        return self.arrival == 0

    @property
    def before(self) -> Tensor | None:
        """The row that holds the state of each row before its color arrives, -1 for the plain one; `None`: all are."""
        return None

    @cached_property
    def color_number(self) -> Tensor:
        """The colors of the rows, numbered 0, 1, 2, ... `[rows]`."""
        return torch.unique_consecutive(self.key // max(self.num_nodes, 1), return_inverse=True)[1]

    def lookup(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """The row that holds each state `color * num_nodes + node`, and whether there is one: else it is plain."""
        return contains(self.key, key)

    def find(self, queries: Queries) -> tuple[Tensor, Tensor]:
        """The row that answers each query, and whether there is one: else the color does not reach it in K rounds."""
        return self.lookup(queries.color * self.num_nodes + queries.node)

    def edges(self, graph: IndexedGraph) -> tuple[Tensor, Tensor, Tensor]:
        """The edges between rows whose messages the color changes in some round: their ends and ids, in any order."""
        source, target, edge = edges_between(graph, self)
        used = self.arrival.index_select(0, source) + self.remaining.index_select(0, target) < self.num_layers
        if not bool(used.all()):
            source, target, edge = source[used], target[used], edge[used]
        return source, target, edge


@dataclass(frozen=True)
class ChangedEdges:
    """The edges between rows of a cone that carry a changed message in some round.

    An edge from s to u does if the route `v -> s -> u -> r` has at most K steps.
    """

    into: Adjacency  # for each row its sources, and the ids of the edges in the graph
    out: Adjacency  # for each row its targets, and the positions of the edges in `into`

    @staticmethod
    def none(like: Tensor) -> ChangedEdges:
        """Of no rows."""
        empty = Adjacency(like.new_zeros(1), like[:0], like[:0])
        return ChangedEdges(empty, empty)


def cones(graph: IndexedGraph, num_layers: int, queries: Queries) -> Iterator[Cone]:
    """The cones of all colors, some colors at a time so that memory stays bounded, in the order of the colors."""
    num_nodes = graph.num_nodes
    if num_nodes == 0 or queries.node.numel() == 0:
        yield empty_cone(graph, num_layers)
        return
    for key in _chunks(graph, num_layers, queries):
        node = key % num_nodes
        yield find_cone(graph, num_layers, Queries(node, node if queries.own else key // num_nodes))


def join(cones: Iterable[Cone]) -> Cone:
    """All cones as one; they come sorted by color, so the result is sorted too."""
    parts = list(cones)
    if len(parts) == 1:
        return parts[0]
    key, arrival, remaining = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("key", "arrival", "remaining")
    )
    return Cone(key, arrival, remaining, parts[0].num_nodes, parts[0].num_layers)


def empty_cone(graph: IndexedGraph, num_layers: int) -> Cone:
    """No row at all: the plain network."""
    none = graph.into.edge[:0]
    return Cone(none, none, none, graph.num_nodes, num_layers)


def find_cone(graph: IndexedGraph, num_layers: int, queries: Queries, starts: Tensor | None = None) -> Cone:
    """The rows of these queries, found in one go; color i starts at node i, or at node `starts[i]`."""
    num_nodes = graph.num_nodes
    steps = min(num_layers, 2 * num_nodes)  # no route is longer
    round_trip = graph.symmetric and queries.own  # what the color reaches in so many steps is back in as many
    colors = torch.unique(queries.color)
    start = colors * num_nodes + (colors if starts is None else starts.index_select(0, colors))  # (v | v)
    reached, arrival = ball(graph.out, start, steps // 2, num_nodes)
    if round_trip:
        return Cone(reached, arrival, arrival, num_nodes, num_layers)
    keys = torch.unique(queries.color * num_nodes + queries.node)
    behind, back = ball(graph.into, keys, (steps - 1) // 2, num_nodes)
    key = torch.unique(torch.cat([reached, behind]))
    arrival_of, remaining_of = (torch.full_like(key, steps + 1) for _ in range(2))
    arrival_of[torch.searchsorted(key, reached)] = arrival
    remaining_of[torch.searchsorted(key, behind)] = back
    candidates = Cone(key, arrival_of, remaining_of, num_nodes, num_layers)
    source, target, _ = edges_between(graph, candidates)
    # A route of K steps that is past its middle goes on only where a query is near enough, and so backwards.
    for step in range(steps // 2, steps):
        ahead = target[arrival_of.index_select(0, source) == step]
        arrival_of[ahead[(arrival_of[ahead] > step) & (remaining_of[ahead] < steps - step)]] = step + 1
    for step in range((steps - 1) // 2, steps):
        before = source[remaining_of.index_select(0, target) == step]
        remaining_of[before[(remaining_of[before] > step) & (arrival_of[before] < steps - step)]] = step + 1
    inside = arrival_of + remaining_of <= steps
    return Cone(key[inside], arrival_of[inside], remaining_of[inside], num_nodes, num_layers)


def ball(adjacency: Adjacency, start: Tensor, radius: int, num_nodes: int) -> tuple[Tensor, Tensor]:
    """All rows within `radius` steps of the sorted rows `start`, sorted, and their number of steps."""
    key, steps, frontier = start, torch.zeros_like(start), start
    for step in range(1, radius + 1):
        color, node = frontier // num_nodes, frontier % num_nodes
        owner, position = adjacency.expand(node)
        neighbor = adjacency.neighbor.index_select(0, position)
        found = torch.unique(torch.cat([key, color.index_select(0, owner) * num_nodes + neighbor]))
        steps = torch.full_like(found, step).index_copy(0, torch.searchsorted(found, key), steps)
        key, frontier = found, found[steps == step]
        if frontier.numel() == 0:  # all that can be reached
            break
    return key, steps


def changed_edges(graph: IndexedGraph, cone: Cone, gradients: bool = True) -> ChangedEdges:
    """Finds them; without `gradients`, `out` is left empty."""
    source, target, edge = cone.edges(graph)
    size = cone.key.numel()
    into = group_edges(target, source, edge, size)
    if not gradients:
        return ChangedEdges(into, ChangedEdges.none(source).out)
    position = torch.arange(source.numel(), device=source.device)
    return ChangedEdges(into, group_edges(into.neighbor, groups(into.ptr, position.numel()), position, size))


def edges_between(graph: IndexedGraph, cone: Cone) -> tuple[Tensor, Tensor, Tensor]:
    """All edges between rows of the same color: the positions of their ends, and their ids, in any order.

    An edge is looked for from its end of lower degree, so that a row of a hub looks at few neighbors.
    """
    out, into = graph.ascending
    source, target, edge = _found_from(out, cone)
    if graph.reverse is None:
        back, forth, other = _found_from(into, cone)
    else:  # the others are the reverses of these, and self-loops their own
        pair = (source != target).nonzero().flatten()
        forth, back = target.index_select(0, pair), source.index_select(0, pair)
        other = graph.reverse.index_select(0, edge.index_select(0, pair))
    return torch.cat([source, forth]), torch.cat([target, back]), torch.cat([edge, other])


def _found_from(adjacency: Adjacency, cone: Cone) -> tuple[Tensor, Tensor, Tensor]:
    """The rows that have a neighbor among the rows of their color, these neighbors, and the ids of the edges."""
    owner, position = adjacency.expand(cone.node)
    block = (cone.key - cone.node).index_select(0, owner)  # color * num_nodes
    found, place = find_among(cone.key, block.add_(adjacency.neighbor.index_select(0, position)))
    return owner.index_select(0, found), place, adjacency.edge.index_select(0, position.index_select(0, found))


def row_bounds(graph: IndexedGraph, num_layers: int, queries: Queries) -> tuple[Tensor, Tensor, Tensor]:
    """For each query alone, at most how many rows it has, edges that are looked at between them, and edges into them.

    Every walk is counted as if it led somewhere new; but no color has more rows than there are nodes.
    """
    ahead, behind, round_trip = num_layers // 2, (num_layers - 1) // 2, graph.symmetric and queries.own
    into, listed = graph.into.degree, graph.ascending[0].degree + graph.ascending[1].degree

    def bound(values: Tensor) -> Tensor:
        there = graph.out.walk_sums(values, ahead)[queries.color]
        if round_trip:
            return there
        return there + graph.into.walk_sums(values, behind)[queries.node]

    rows = bound(torch.ones_like(into)).clamp(max=max(graph.num_nodes, 1))
    return rows, bound(listed), bound(into).clamp(max=graph.into.edge.numel())


def cut(cost: Tensor, limit: float) -> Iterator[tuple[int, int]]:
    """Splits what costs `cost` `[items]` into runs of at most `limit` each, or of one item: first and last + 1."""
    total, first = cost.double().cumsum(0).cpu(), 0
    while first < total.numel():
        before = float(total[first - 1]) if first else 0.0
        last = int(torch.searchsorted(total, before + limit, right=True))
        yield first, max(last, first + 1)
        first = max(last, first + 1)


def _chunks(graph: IndexedGraph, num_layers: int, queries: Queries) -> Iterator[Tensor]:
    """Splits the queries so that each part looks at about `CHUNK` neighbors at most; a color is never split."""
    round_trip = graph.symmetric and queries.own
    num_nodes, into, out = graph.num_nodes, graph.into, graph.out
    key = torch.unique(queries.color * num_nodes + queries.node)
    color = key // num_nodes
    # The neighbors that a search looks at are at most the walks of one step more, and at most all there are.
    one, limit = torch.ones_like(out.degree), out.neighbor.numel() + num_nodes
    work = out.walk_sums(one, num_layers // 2 + 1).clamp_(max=limit)[color]
    first = is_first(color)
    work = work * first
    if not round_trip:
        work = work + into.walk_sums(one, (num_layers - 1) // 2 + 1).clamp_(max=limit)[key % num_nodes]
    yield from key.split(part_sizes(work, first))


def is_first(owner: Tensor) -> Tensor:
    """Whether each of the sorted numbers `[items]` is the first of its kind."""
    first = torch.ones_like(owner, dtype=torch.bool)
    first[1:] = owner[1:] != owner[:-1]
    return first


def part_sizes(work: Tensor, first: Tensor) -> list[int]:
    """The sizes of parts of about `CHUNK` work each, of items `[items]` in groups that begin where `first` is true.

    A group is never split: it belongs to the part in which its first item falls.
    """
    part = (work.cumsum(0) // CHUNK)[first.nonzero().flatten()][first.cumsum(0) - 1]
    return torch.unique_consecutive(part, return_counts=True)[1].tolist()
