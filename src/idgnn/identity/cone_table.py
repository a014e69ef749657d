"""The cones of many colors, found once and copied out for each batch of roots."""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, IndexedGraph, groups, pointers, spread
from idgnn.identity.cone import ChangedEdges, Cone, changed_edges, cones, join
from idgnn.identity.queries import Queries


class ConeTable:
    """The cones of many colors, each node read under its own color: found once, and copied out color by color.

    Args:
        graph: The graph.
        num_layers: Number of rounds.
        roots: The colors.
    """

    def __init__(self, graph: IndexedGraph, num_layers: int, roots: Tensor) -> None:
        parts = [(cone, changed_edges(graph, cone)) for cone in cones(graph, num_layers, Queries(roots, roots))]
        self.cone = join(cone for cone, _ in parts)
        color = self.cone.key // max(graph.num_nodes, 1)
        self.row_ptr = pointers(color, graph.num_nodes)  # the rows of each color
        first = self.row_ptr.index_select(0, color)  # [rows]
        # Rows are counted from the first row of their color on, so that they stay right when rows are copied; and
        # positions of edges from its first edge on.
        start, edge_start, into, out = 0, 0, list[tuple[Tensor, ...]](), list[tuple[Tensor, ...]]()
        for cone, changed in parts:
            size, count = cone.key.numel(), changed.into.neighbor.numel()
            begin = first[start : start + size] - start
            edge_begin = changed.into.ptr.index_select(0, begin)
            into_row, out_row = groups(changed.into.ptr, count), groups(changed.out.ptr, count)
            source = changed.into.neighbor - begin.index_select(0, into_row)
            target = changed.out.neighbor - begin.index_select(0, out_row)
            into.append((changed.into.ptr[1:] + edge_start, source, changed.into.edge))
            out.append(
                (changed.out.ptr[1:] + edge_start, target, changed.out.edge - edge_begin.index_select(0, out_row))
            )
            start, edge_start = start + size, edge_start + count
        self.changed = ChangedEdges(_joined(into), _joined(out))

    def take(self, queries: Queries) -> tuple[Cone, ChangedEdges]:
        """The rows of these queries, and the changed edges between them; every color was one of the roots."""
        colors, table = torch.unique(queries.color), self.cone
        first = self.row_ptr.index_select(0, colors)
        count = self.row_ptr.index_select(0, colors + 1) - first
        number, row = spread(first, count)
        key, arrival, remaining = (each.index_select(0, row) for each in (table.key, table.arrival, table.remaining))
        begin = (count.cumsum(0) - count).index_select(0, number)  # [rows] the first row of the color
        into = _copied(self.changed.into, row, begin, None)
        out = _copied(self.changed.out, row, begin, into.ptr.index_select(0, begin))
        return Cone(key, arrival, remaining, table.num_nodes, table.num_layers), ChangedEdges(into, out)


def _joined(parts: list[tuple[Tensor, ...]]) -> Adjacency:
    ptr, neighbor, edge = (torch.cat(part) for part in zip(*parts, strict=True))
    return Adjacency(torch.cat([ptr.new_zeros(1), ptr]), neighbor, edge)


def _copied(table: Adjacency, row: Tensor, begin: Tensor, edge_begin: Tensor | None) -> Adjacency:
    """The lists of some rows, whose neighbors are counted from row `begin` on, and edges from `edge_begin` on."""
    owner, position = table.expand(row)
    neighbor = table.neighbor.index_select(0, position) + begin.index_select(0, owner)
    edge = table.edge.index_select(0, position)
    if edge_begin is not None:
        edge += edge_begin.index_select(0, owner)
    return Adjacency(torch.cat([row.new_zeros(1), table.degree_of(row).cumsum(0)]), neighbor, edge)
