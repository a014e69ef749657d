r"""Which states need a row of their own when two nodes are colored, each with a color of its own.

A query reads `r` while `v` has the first color and `w` the second. The state of `u` differs from the states under one
color only once both colors have arrived, and matters only while the answer can still be reached:

.. math:: U(r|v, w) = \{\, u : \max(d(v, u), d(w, u)) + d(u, r) \le K \,\}.

Before the farther color has arrived, the state of `u` is that under the nearer color alone, :math:`(u|v)` or
:math:`(u|w)`, and before the nearer one has arrived it is plain. So there are rows :math:`(u|v, w)` for `u` in `U`, and
rows under one color where that color is strictly nearer:

.. math:: \{\, u : d(v, u) + d(u, r) \le K,\ d(v, u) < d(w, u) \,\}

and the same for `w`. This set is closed: the rows that :math:`(u|v)` reads in time are in it or plain. A node with both
colors counts as one with the first color alone, and then the query has one color.

States go by numbers `block * num_nodes + node` as in :mod:`idgnn.identity.cone`. Block `v` is the first color at `v`,
block `num_nodes + w` the second one at `w`, and block `2 * num_nodes + p` the p-th pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph, contains
from idgnn.identity.cone import Cone, ball, cones, edges_between, find_cone, is_first, join, part_sizes
from idgnn.identity.queries import Queries


@dataclass(frozen=True)
class TwoColorCone(Cone):
    """The rows of queries with two colors: those under the first, under the second, and under both.

    `arrival` of a row under both colors is that of the farther one, before which its state is that of row `before`.
    """

    states: Cone  # all states that the color changes: the rows, and those of a pair that equal a row under one color
    row: Tensor  # [states] the row that holds each
    is_row: Tensor  # [states] whether it is a row itself
    color: Tensor  # [rows] 0, 1 or 2
    row_before: Tensor  # [rows] -1: the plain one
    pair: Tensor  # [pairs] v * num_nodes + w, sorted

    @property
    def colored(self) -> Tensor:
        """The color of each row `[rows]`: 0, 1 or 2."""
        return self.color

    @property
    def before(self) -> Tensor:
        """The row that holds the state of each row before the farther color arrives, -1 for the plain one."""
        return self.row_before

    def lookup(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """The row that holds each state `block * num_nodes + node`, and whether there is one: else it is plain."""
        place, there = contains(self.states.key, key)
        return self.row.index_select(0, place) if self.row.numel() else place, there

    def find(self, queries: Queries) -> tuple[Tensor, Tensor]:
        """The row that answers each query, and whether there is one: else no color reaches it in K rounds."""
        block = _blocks(queries, self.pair, self.num_nodes)
        row, there = self.lookup(block * self.num_nodes + queries.node)
        return row, there & (block >= 0)

    def edges(self, graph: IndexedGraph) -> tuple[Tensor, Tensor, Tensor]:
        """The edges between rows whose messages a color changes in some round: their ends and ids, in any order."""
        states = self.states
        source, target, edge = edges_between(graph, states)
        used = states.arrival.index_select(0, source) + states.remaining.index_select(0, target) < self.num_layers
        used = (used & self.is_row.index_select(0, target)).nonzero().flatten()
        source, target = (self.row.index_select(0, end.index_select(0, used)) for end in (source, target))
        return source, target, edge.index_select(0, used)


@dataclass(frozen=True)
class PairStates:
    """The states of some pairs that a color changes, sorted by pair, then node."""

    key: Tensor  # [states] pair * num_nodes + node
    first: Tensor  # [states] d(v, u), or num_layers + 1 where that is too far to matter
    second: Tensor  # [states] d(w, u)
    remaining: Tensor  # [states] the least d(u, r) over the queries r of the pair
    num_layers: int

    @property
    def both(self) -> Tensor:
        """Whether each has a row of its own: both colors arrive in time."""
        return torch.maximum(self.first, self.second) + self.remaining <= self.num_layers


def all_rows(graph: IndexedGraph, num_layers: int, queries: Queries) -> Cone:
    """The rows of all queries, with one color or two."""
    if queries.second is None:
        return join(cones(graph, num_layers, queries))
    return two_color_cone(graph, num_layers, queries)


def two_color_cone(graph: IndexedGraph, num_layers: int, queries: Queries) -> TwoColorCone:
    """The rows of queries with two colors: first those under one color, of the first and of the second, then those
    under both."""
    size, pair = graph.num_nodes, colored_pairs(queries, graph.num_nodes)
    states = _joined(list(pair_states(graph, num_layers, queries, pair)), queries.node[:0], num_layers)
    v, w = pair // max(size, 1), pair % max(size, 1)
    first = _nearer_rows(states, states.first, states.second, v, size, with_first_alone(graph, num_layers, queries))
    second = _nearer_rows(
        states, states.second, states.first, size + w, size, with_second_alone(graph, num_layers, queries)
    )
    one, both = join((first.rows, second.rows)), states.both
    num_one, device = one.key.numel(), one.key.device
    # Each state of a pair is held by a row under the nearer color before the farther one arrives, and then, if both
    # arrive in time, by a row of its own.
    before = torch.where(second.place < 0, first.place, second.place + first.rows.key.numel())
    row = before.masked_scatter(both, torch.arange(num_one, num_one + int(both.sum()), device=device))
    nearer = Cone(
        states.key + 2 * size * size,  # the blocks of pairs are behind those of the colors
        torch.minimum(states.first, states.second),
        states.remaining,
        size,
        num_layers,
    )
    colors = (
        (first.rows.arrival == 0) * 1,
        (second.rows.arrival == 0) * 2,
        ((states.first == 0) * 1 + (states.second == 0) * 2)[both],
    )
    return TwoColorCone(
        key=torch.cat([one.key, nearer.key[both]]),
        arrival=torch.cat([one.arrival, torch.maximum(states.first, states.second)[both]]),
        remaining=torch.cat([one.remaining, states.remaining[both]]),
        num_nodes=size,
        num_layers=num_layers,
        states=join((one, nearer)),
        row=torch.cat([torch.arange(num_one, device=device), row]),
        is_row=torch.cat([torch.ones(num_one, dtype=torch.bool, device=device), both]),
        color=torch.cat(colors).to(torch.int8),
        row_before=torch.cat([torch.full_like(one.key, -1), before[both]]),
        pair=pair,
    )


def _joined(parts: list[PairStates], none: Tensor, num_layers: int) -> PairStates:
    """All parts as one; `none` is an empty tensor of ids, for no parts at all."""
    names = ("key", "first", "second", "remaining")
    key, first, second, remaining = (torch.cat([none, *(getattr(part, name) for part in parts)]) for name in names)
    return PairStates(key, first, second, remaining, num_layers)


@dataclass(frozen=True)
class _NearerRows:
    """The rows under one of the colors."""

    rows: Cone
    place: Tensor  # [states] the row that each state of a pair has before the farther color arrives; -1: none of these


def _nearer_rows(
    states: PairStates, distance: Tensor, other: Tensor, block: Tensor, num_nodes: int, alone: Cone
) -> _NearerRows:
    """The rows under a color, at `distance` from it, where it is strictly nearer than the other; pairs share them.

    `block` is that of the color for each pair, and `alone` are the rows of queries that have this color alone.
    """
    chosen = (distance < other).nonzero().flatten()
    key = states.key.index_select(0, chosen)
    key = block.index_select(0, key // max(num_nodes, 1)) * num_nodes + key % max(num_nodes, 1)
    found, inverse = torch.unique(torch.cat([key, alone.key]), return_inverse=True)
    arrival = torch.cat([distance.index_select(0, chosen), alone.arrival])
    left = torch.cat([states.remaining.index_select(0, chosen), alone.remaining])
    rows = Cone(
        found,
        torch.empty_like(found).index_copy(0, inverse, arrival),
        torch.full_like(found, states.num_layers + 1).scatter_reduce(0, inverse, left, "amin"),
        num_nodes,
        states.num_layers,
    )
    place = torch.full_like(states.key, -1).index_copy(0, chosen, inverse[: chosen.numel()])
    return _NearerRows(rows, place)


def pair_states(graph: IndexedGraph, num_layers: int, queries: Queries, pair: Tensor) -> Iterator[PairStates]:
    """The states of all pairs, some pairs at a time so that memory stays bounded, in the order of the pairs."""
    assert queries.second is not None
    num_nodes = graph.num_nodes
    both = ((queries.color >= 0) & (queries.second >= 0)).nonzero().flatten()
    if both.numel() == 0:
        return
    reached = queries.take(both)
    assert reached.second is not None
    number = torch.searchsorted(pair, reached.color * num_nodes + reached.second)
    key = torch.unique(number * num_nodes + reached.node)
    v, w = pair // num_nodes, pair % num_nodes
    for part in key.split(_part_sizes(graph, num_layers, key, v, w)):
        own = Queries(part % num_nodes, part // num_nodes)
        yield _states_of(graph, num_layers, own, v, w)


def _states_of(graph: IndexedGraph, num_layers: int, queries: Queries, v: Tensor, w: Tensor) -> PairStates:
    """The states of the pairs that are the colors of these queries, found in one go."""
    read_first = v.index_select(0, queries.color)
    if graph.symmetric and torch.equal(read_first, queries.node):  # what the color reaches is back in as many steps
        start = queries.color * graph.num_nodes + read_first
        key, steps = ball(graph.out, start, min(num_layers, 2 * graph.num_nodes) // 2, graph.num_nodes)
        here = Cone(key, steps, steps, graph.num_nodes, num_layers)
    else:
        here = find_cone(graph, num_layers, queries, v)
    there = find_cone(graph, num_layers, queries, w)
    key = torch.unique(torch.cat([here.key, there.key]))
    first, second, remaining = (torch.full_like(key, num_layers + 1) for _ in range(3))
    for cone, distance in ((here, first), (there, second)):
        place = torch.searchsorted(key, cone.key)
        distance[place], remaining[place] = cone.arrival, cone.remaining
    return PairStates(key, first, second, remaining, num_layers)


def with_first_alone(graph: IndexedGraph, num_layers: int, queries: Queries) -> Cone:
    """The rows of the queries that have the first color alone."""
    assert queries.second is not None
    alone = ((queries.color >= 0) & (queries.second < 0)).nonzero().flatten()
    one_color = Queries(queries.node.index_select(0, alone), queries.color.index_select(0, alone))
    return join(cones(graph, num_layers, one_color))


def with_second_alone(graph: IndexedGraph, num_layers: int, queries: Queries) -> Cone:
    """The rows of the queries that have the second color alone, in its blocks."""
    assert queries.second is not None
    cone = with_first_alone(graph, num_layers, Queries(queries.node, queries.second, queries.color))
    return replace(cone, key=cone.key + graph.num_nodes * graph.num_nodes)


def colored_pairs(queries: Queries, num_nodes: int) -> Tensor:
    """The different pairs of colored nodes, as numbers `v * num_nodes + w`, sorted."""
    assert queries.second is not None
    both = (queries.color >= 0) & (queries.second >= 0)
    return torch.unique((queries.color * num_nodes + queries.second)[both])


def _blocks(queries: Queries, pair: Tensor, num_nodes: int) -> Tensor:
    """The block that each query reads, -1 where nothing is colored."""
    first, second = queries.color, queries.second
    assert second is not None
    number, _ = contains(pair, first * num_nodes + second)
    one = torch.where(first >= 0, first, torch.where(second >= 0, num_nodes + second, -1))
    return torch.where((first >= 0) & (second >= 0), 2 * num_nodes + number, one)


def _part_sizes(graph: IndexedGraph, num_layers: int, key: Tensor, v: Tensor, w: Tensor) -> list[int]:
    """Splits queries so that each part looks at about `CHUNK` neighbors at most; a pair is never split."""
    num_nodes, out, into = graph.num_nodes, graph.out, graph.into
    one, limit = torch.ones_like(out.degree), out.neighbor.numel() + num_nodes
    ahead = out.walk_sums(one, num_layers // 2 + 1).clamp_(max=limit)
    behind = into.walk_sums(one, (num_layers - 1) // 2 + 1).clamp_(max=limit)
    number = key // num_nodes
    first = is_first(number)
    work = (ahead[v[number]] + ahead[w[number]]) * first + 2 * behind[key % num_nodes]
    return part_sizes(work, first)
