r"""The rows of colors that are read at many nodes of one type, as a ranking does: found by one search from each color.

A search from both ends (:mod:`idgnn.identity.cone`) finds the fewest rows, and pays for every node that is read. Where
nearly all that a color reaches is read, one search from the color is cheaper. It goes no further than the schema
allows: a row that is reached after `a` steps matters if the type that is read is at most `K - a` steps from its type.
That is never fewer rows than needed, since a route of nodes is a route of types, so that the answers stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, IndexedGraph, group_edges, groups
from idgnn.identity.cone import CHUNK, ChangedEdges, Cone, cut
from idgnn.identity.hetero.types import TypedGraph
from idgnn.identity.queries import Queries

# Entries of the table of colors and nodes that a search marks.
_TABLE = 2**25
# Of a search from both ends, one neighbor that is looked at takes about so many times as long.
_BOTH_ENDS = 2.0


@dataclass(frozen=True)
class ForwardSearch:
    """What searches from colors to one type that is read need to know, worked out once for a graph."""

    graph: IndexedGraph
    num_layers: int
    left: Tensor  # [nodes] the steps from the type of each node to the type that is read
    work: Tensor  # [nodes] at most how many neighbors a search from each node looks at
    ahead: Tensor  # [nodes] the same for a search from both ends: from the color,
    behind: Tensor  # [nodes] and from a node that is read

    @staticmethod
    def of(graph: IndexedGraph, typed: TypedGraph, read: str, num_layers: int) -> ForwardSearch:
        """Costs about two sums over the edges for each round."""
        steps = typed.schema.steps_to(read)
        left = torch.tensor([steps.get(name, num_layers + 1) for name in typed.schema.node_types])
        left = left.to(typed.edge_index.device).index_select(0, typed.node_type)
        out, limit = graph.out, float(graph.out.neighbor.numel() + graph.num_nodes)
        source = groups(out.ptr, out.neighbor.numel())
        work = torch.zeros(graph.num_nodes, dtype=torch.double, device=left.device)
        for step in range(num_layers, 0, -1):  # W(v) = sum of 1 + W(u) over the neighbors u that a search goes on to
            reached = (1 + work) * (left <= num_layers - step)
            work = torch.zeros_like(work).index_add(0, source, reached.index_select(0, out.neighbor))
        one = torch.ones_like(left)
        ahead = out.walk_sums(one, num_layers // 2 + 1)
        behind = graph.into.walk_sums(one, (num_layers - 1) // 2 + 1)
        return ForwardSearch(graph, num_layers, left, *(each.clamp(max=limit) for each in (work, ahead, behind)))

    def pays(self, queries: Queries) -> bool:
        """Whether one search from each color is cheaper than searches from both ends."""
        colors = torch.unique(queries.color)
        both = self.ahead.index_select(0, colors).sum() + self.behind.index_select(0, queries.node).sum()
        return bool(self.work.index_select(0, colors).sum() <= _BOTH_ENDS * both)

    def run(self, queries: Queries) -> tuple[Cone, ChangedEdges]:
        """The rows of the colors, and the edges between them that carry a changed message."""
        colors, size = torch.unique(queries.color), max(self.graph.num_nodes, 1)
        cost = self.work.index_select(0, colors)
        # A part marks a table of its colors and all nodes.
        cost = torch.maximum(cost, torch.full_like(cost, CHUNK * size / _TABLE))
        parts, first_row = [], 0
        for first, last in cut(cost, CHUNK):
            key, arrival, ends, edge = self._search(colors[first:last])
            parts.append((key, arrival, ends + first_row, edge))
            first_row += key.numel()
        none = colors[:0]
        parts = parts or [(none, none, none.view(1, 0).expand(2, 0), none)]
        key, arrival, edge = (torch.cat([part[i] for part in parts]) for i in (0, 1, 3))
        source, target = torch.cat([part[2] for part in parts], dim=1)
        remaining = self.left.index_select(0, key % size)
        cone = Cone(key, arrival, remaining, self.graph.num_nodes, self.num_layers)
        empty = Adjacency(none.new_zeros(1), none, none)
        return cone, ChangedEdges(group_edges(target, source, edge, key.numel()), empty)

    def _search(self, colors: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Keys and arrivals of the rows of some colors, and the changed edges: their ends `[2, edges]` and ids."""
        size, out = self.graph.num_nodes, self.graph.out
        arrival = torch.full((colors.numel() * size,), -1, dtype=torch.int16, device=colors.device)
        frontier = torch.arange(colors.numel(), device=colors.device) * size + colors
        frontier = frontier[self.left.index_select(0, colors) <= self.num_layers]
        arrival[frontier] = 0
        ends, edges = [], []
        for step in range(1, self.num_layers + 1):
            node = frontier % size
            owner, position = out.expand(node)
            neighbor = out.neighbor.index_select(0, position)
            near = (self.left.index_select(0, neighbor) <= self.num_layers - step).nonzero().flatten()
            source = frontier.index_select(0, owner.index_select(0, near))
            neighbor = neighbor.index_select(0, near)
            target = source - source % size + neighbor
            ends.append(torch.stack([source, target]))
            edges.append(out.edge.index_select(0, position.index_select(0, near)))
            arrival[target[arrival.index_select(0, target) < 0]] = step
            frontier = (arrival == step).nonzero().flatten()
        row = (arrival >= 0).nonzero().flatten()
        place = torch.empty(arrival.numel(), dtype=torch.int32, device=row.device)
        place[row] = torch.arange(row.numel(), dtype=torch.int32, device=row.device)
        found = place.index_select(0, torch.cat(ends, dim=1).flatten()).long().view(2, -1)
        key = colors.index_select(0, row // max(size, 1)) * size + row % max(size, 1)
        return key, arrival.index_select(0, row).long(), found, torch.cat(edges)
