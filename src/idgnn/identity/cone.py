r"""Which states need a row of their own.

The answer to "embedding of `r` when `v` is colored" after `K` rounds depends on the colored state of `u` only if
`u` lies on a route `v -> u -> r` of at most `K` message steps. With all queries `r` of one color `v` taken together,

.. math:: U(v) = \{\, u : d(v, u) + \min_{r \in Q(v)} d(u, r) \le K \,\},

the *cone* of `v`. The first half of such a route lies in the ball of radius `floor(K / 2)` that the color reaches,
the second half in the ball of radius `floor((K - 1) / 2)` from which a query is reached: two small balls instead of
one of radius `K`. Everything here works on pairs (color, node), written as one number `color * num_nodes + node`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, Links, is_symmetric
from idgnn.identity.queries import Queries

# Neighbors looked at in one go: 2^21 of them take about a hundred MB of index tensors while a part is worked on.
CHUNK = 2**21


@dataclass(frozen=True)
class Cone:
    """The rows that need a state of their own, sorted by color, then node."""

    key: Tensor  # [rows] color * num_nodes + node
    arrival: Tensor  # [rows] d(color, node): the round after which the color has arrived


def cones(links: Links, num_layers: int, queries: Queries, symmetric: bool | None = None) -> Iterator[Cone]:
    """The cones of all colors, some colors at a time so that memory stays bounded.

    `symmetric` says whether every edge around the queries has its reverse; without it the edges are looked at.
    """
    num_nodes, into, out = links.num_nodes, links.into, links.out
    if num_nodes == 0:
        yield Cone(into.ptr.new_empty(0), into.ptr.new_empty(0))
        return
    num_layers = min(num_layers, 2 * num_nodes)  # no route is longer
    # Undirected: what the color reaches in floor(K / 2) steps is back in as many, and nothing further is.
    mirrored = queries.own and (is_symmetric(links.edge_index, num_nodes) if symmetric is None else symmetric)
    key = torch.unique(queries.color * num_nodes + queries.node)
    for chunk in _chunks(key, num_nodes, num_layers, into, out, mirrored):
        color = chunk // num_nodes
        start = torch.unique(color) * (num_nodes + 1)  # (v | v)
        reached, steps = ball(out, start, num_layers // 2, num_nodes)
        if mirrored:
            yield Cone(reached, steps)
            continue
        candidates = torch.unique(torch.cat([reached, ball(into, chunk, (num_layers - 1) // 2, num_nodes)[0]]))
        source, target, _ = edges_between(into, candidates, num_nodes)
        arrival = _distance(candidates, start, source, target, num_layers)
        remaining = _distance(candidates, chunk, target, source, num_layers)
        inside = arrival + remaining <= num_layers
        yield Cone(candidates[inside], arrival[inside])


def join(parts: Iterable[Cone]) -> Cone:
    """All cones as one; they come sorted by color, so what is put together is sorted too."""
    key, arrival = zip(*((part.key, part.arrival) for part in parts), strict=True)
    return Cone(torch.cat(key), torch.cat(arrival))


def contains(sorted_keys: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """For each key, where it would stand among the sorted ones, and whether it is there."""
    if sorted_keys.numel() == 0:
        return torch.zeros_like(key), torch.zeros_like(key, dtype=torch.bool)
    position = torch.searchsorted(sorted_keys, key).clamp_(max=sorted_keys.numel() - 1)
    return position, sorted_keys.index_select(0, position) == key


def ball(adjacency: Adjacency, start: Tensor, radius: int, num_nodes: int) -> tuple[Tensor, Tensor]:
    """All pairs within `radius` steps of the pairs `start`, sorted, and their number of steps."""
    key, steps, frontier = start, torch.zeros_like(start), start
    for step in range(1, radius + 1):
        color, node = frontier // num_nodes, frontier % num_nodes
        owner, position = adjacency.expand(node)
        found = torch.unique(torch.cat([key, color[owner] * num_nodes + adjacency.neighbor.index_select(0, position)]))
        steps = torch.full_like(found, step).index_copy(0, torch.searchsorted(found, key), steps)
        key, frontier = found, found[steps == step]
        if frontier.numel() == 0:  # all that can be reached
            break
    return key, steps


def edges_between(into: Adjacency, key: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """The edges among the sorted pairs `key` of equal color: the positions of their sources and targets in `key`, and
    their own in the flat lists of `into`."""
    owner, position = into.expand(key % num_nodes)
    source, there = contains(key, (key // num_nodes)[owner] * num_nodes + into.neighbor[position])
    return source[there], owner[there], position[there]


def _distance(key: Tensor, start: Tensor, source: Tensor, target: Tensor, num_layers: int) -> Tensor:
    """Steps from the nearest of the pairs `start` of the same color; anything above `num_layers` means further.

    Shortest routes between members of a cone stay inside the cone, so the edges among the candidates suffice."""
    distance = torch.full_like(key, num_layers + 1)
    position, there = contains(key, start)
    distance[position[there]] = 0
    for _ in range(num_layers):
        previous, distance = distance, distance.scatter_reduce(0, target, distance[source] + 1, "amin")
        if torch.equal(previous, distance):
            break
    return distance


def _chunks(
    key: Tensor, num_nodes: int, num_layers: int, into: Adjacency, out: Adjacency, mirrored: bool
) -> Iterator[Tensor]:
    """Splits the queries so that each part looks at about `CHUNK` neighbors at most; a color is never split."""
    color = key // num_nodes
    # The neighbors that a search looks at are at most the walks of one step more, and at most all there are.
    one, limit = torch.ones_like(out.degree), out.neighbor.numel() + num_nodes
    ahead = out.walk_sums(one, num_layers // 2 + 1).clamp_(max=limit)[color]
    if not mirrored:  # then the edges into all that was reached are looked at too
        ahead += out.walk_sums(into.degree, num_layers // 2).clamp_(max=limit)[color]
    behind = into.walk_sums(one, (num_layers - 1) // 2 + 1).clamp_(max=limit)[key % num_nodes]
    first = torch.ones_like(color, dtype=torch.bool)
    first[1:] = color[1:] != color[:-1]
    work = (ahead * first + behind).cumsum(0)
    # A color belongs to the part in which its first query falls.
    part = (work // CHUNK)[first.nonzero().flatten()][first.cumsum(0) - 1]
    yield from key.split(torch.unique_consecutive(part, return_counts=True)[1].tolist())
