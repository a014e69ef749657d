r"""The rows of some queries at a time, with all that is needed to compute them when the plain states are at hand.

A row :math:`(u|v)` has a state of its own after round k if the color has arrived, :math:`d(v, u) \le k`, and the
answer still depends on it, :math:`d(u, r) \le K - k` for one of the queries r of v. Both distances are found by two
searches of half the depth (:mod:`idgnn.identity.cone`) that are carried on towards each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.cone import ball, contains
from idgnn.identity.lookup import Keys, Lookup, joined
from idgnn.identity.queries import Queries


@dataclass(frozen=True)
class Chunk:
    """The rows of some queries, and when each of them has a state of its own."""

    rows: Keys
    arrival: Tensor  # [rows] d(v, u)
    remaining: Tensor  # [rows] the least d(u, r) over the queries r of the color v
    answer: Tensor  # [queries] the row of each
    num_layers: int

    def own(self, depth: int) -> Tensor:
        """The rows with a state of their own after `depth` rounds, in order."""
        return ((self.arrival <= depth) & (self.remaining <= self.num_layers - depth)).nonzero().flatten()


def chunk_of(links: Lookup, num_layers: int, queries: Queries) -> tuple[Chunk, Tensor]:
    """The rows of these queries, and which of the queries a color reaches at all: the others have no row."""
    num_nodes = links.num_nodes
    start = torch.unique(queries.color) * (num_nodes + 1)  # (v | v)
    asked = queries.color * num_nodes + queries.node
    reached, steps = ball(links.out, start, num_layers // 2, num_nodes)
    if queries.own and links.symmetric:  # what the color reaches in so many steps is back in as many
        key, arrival, remaining = reached, steps, steps
    else:
        key, arrival, remaining = _both_ways(links, num_layers, torch.unique(asked), reached, steps)
    answer, there = contains(key, asked)
    return Chunk(Keys.of(key, num_nodes), arrival, remaining, answer[there], num_layers), there


def edges_of_chunk(links: Lookup, chunk: Chunk) -> tuple[Tensor, Tensor, Tensor]:
    """The edges between rows with states of their own: source, target and id, sorted by target.

    One from s to u is of use in some round if the route `v -> s -> u -> r` has at most K steps.
    """
    parts = []
    for steps in range(chunk.num_layers):
        sources = (chunk.arrival == steps).nonzero().flatten()
        targets = (chunk.remaining < chunk.num_layers - steps).nonzero().flatten()
        parts.append(joined(links, chunk.rows, sources, targets))
    source, target, edge = (torch.cat(part) for part in zip(*parts, strict=True))
    target, order = torch.sort(target, stable=True)
    return source[order], target, edge[order]


def row_bounds(links: Lookup, num_layers: int, queries: Queries) -> tuple[Tensor, Tensor, Tensor]:
    """For each query alone, at most how many rows it has, edges that are looked at between them, and edges into them.

    Every walk is counted as if it led somewhere new; but no color has more rows than there are nodes, and a row is
    compared with its neighbors or with the other rows, whichever are fewer.
    """
    ahead, behind = num_layers // 2, (num_layers - 1) // 2
    into, both_ends = links.into.degree, links.into.degree + links.out.degree

    def bound(values: Tensor) -> Tensor:
        there = links.out.walk_sums(values, ahead)[queries.color]
        if queries.own and links.symmetric:
            return there
        return there + links.into.walk_sums(values, behind)[queries.node]

    rows = bound(torch.ones_like(into)).clamp(max=max(links.num_nodes, 1))
    parallel = torch.unique_consecutive(links.key, return_counts=True)[1].max() if links.key.numel() else 0
    return rows, torch.minimum(bound(both_ends), parallel * rows * rows), bound(into).clamp(max=links.key.numel())


def cut(cost: Tensor, limit: float) -> Iterator[tuple[int, int]]:
    """Splits what costs `cost` `[items]` into runs of at most `limit` each, or of one item: first and last + 1."""
    total, first = cost.double().cumsum(0).cpu(), 0
    while first < total.numel():
        before = float(total[first - 1]) if first else 0.0
        last = int(torch.searchsorted(total, before + limit, right=True))
        yield first, max(last, first + 1)
        first = max(last, first + 1)


def _both_ways(
    links: Lookup, num_layers: int, asked: Tensor, reached: Tensor, steps: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The rows of the pairs `asked` (sorted, none twice) with both distances; the color's first half is given."""
    num_nodes, beyond = links.num_nodes, num_layers + 1
    behind, steps_back = ball(links.into, asked, (num_layers - 1) // 2, num_nodes)
    rows = Keys.of(torch.unique(torch.cat([reached, behind])), num_nodes)
    arrival, remaining = torch.full_like(rows.key, beyond), torch.full_like(rows.key, beyond)
    arrival[torch.searchsorted(rows.key, reached)] = steps
    remaining[torch.searchsorted(rows.key, behind)] = steps_back
    # A route of K steps that is past its middle goes on only where a query is near enough, and so backwards.
    for step in range(num_layers // 2, num_layers):
        sources = (arrival == step).nonzero().flatten()
        targets = ((arrival > step) & (remaining < num_layers - step)).nonzero().flatten()
        arrival[joined(links, rows, sources, targets)[1]] = step + 1
    for step in range((num_layers - 1) // 2, num_layers):
        targets = (remaining == step).nonzero().flatten()
        sources = ((remaining > step) & (arrival < num_layers - step)).nonzero().flatten()
        remaining[joined(links, rows, sources, targets)[0]] = step + 1
    inside = arrival + remaining <= num_layers
    return rows.key[inside], arrival[inside], remaining[inside]
