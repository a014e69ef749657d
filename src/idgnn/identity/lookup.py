"""The edges of a large graph, laid out so that those between any two sets of rows are found without a look at the rest.

A row of a hub has all of the hub's edges, but few of them come from rows of the same color. They are found from
whichever end is cheaper, and where a node has more edges than its color has rows, by asking for each of these rows
whether there is an edge: for a star of n nodes that is about n questions in place of n^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, is_symmetric, outgoing, pointers, spread
from idgnn.identity.cone import contains


@dataclass(frozen=True)
class Lookup:
    """A graph with its neighbors in both directions, and its edges in an order in which a pair is found by bisection.

    With self-loops, every node has exactly one, as the layers see it; it is edge `num_edges + node`.
    """

    num_nodes: int
    into: Adjacency  # sorted by source too
    out: Adjacency
    key: Tensor  # [edges] target * num_nodes + source, sorted: the order of `into`
    symmetric: bool

    @staticmethod
    def of(edge_index: Tensor, num_nodes: int, self_loops: bool) -> Lookup:
        """Costs a few sorts of the edges, once per graph."""
        edge = torch.arange(edge_index.size(1), device=edge_index.device)
        if self_loops:
            apart = edge_index[0] != edge_index[1]
            node = torch.arange(num_nodes, device=edge.device)
            first_loop = edge_index.size(1)
            edge_index = torch.cat([edge_index[:, apart], node.expand(2, -1)], dim=1)
            edge = torch.cat([edge[apart], first_loop + node])
        source, target = edge_index
        key, order = torch.sort(target * num_nodes + source, stable=True)
        into = Adjacency(pointers(target[order], num_nodes), source[order], edge[order])
        out = outgoing(edge_index, num_nodes)
        out = Adjacency(out.ptr, out.neighbor, edge[out.edge])
        return Lookup(num_nodes, into, out, key, is_symmetric(edge_index, num_nodes))

    def find(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The edges between given pairs of nodes: for each edge the number of its pair, and its id."""
        wanted = target * self.num_nodes + source
        first = torch.searchsorted(self.key, wanted)
        count = torch.searchsorted(self.key, wanted, right=True) - first
        pair, position = spread(first, count)
        return pair, self.into.edge.index_select(0, position)


@dataclass(frozen=True)
class Keys:
    """Rows `(u|v)`, sorted by color, then node."""

    key: Tensor  # [rows] color * num_nodes + node
    node: Tensor  # [rows]
    group: Tensor  # [rows] the colors numbered from 0
    num_groups: int

    @staticmethod
    def of(key: Tensor, num_nodes: int) -> Keys:
        """Of sorted keys."""
        color, group = torch.unique_consecutive(key // max(num_nodes, 1), return_inverse=True)
        return Keys(key, key % max(num_nodes, 1), group, color.numel())


def joined(links: Lookup, rows: Keys, sources: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All edges from the rows `sources` to the rows `targets` (sorted positions in `rows`) of the same color: the
    positions of their ends, and their ids.

    A search from a row looks at the smaller of its number of neighbors and the number of rows at the other end, and
    each color searches from the end where that is less in all.
    """
    from_source = _Side(links.out, rows, sources, targets)
    from_target = _Side(links.into, rows, targets, sources)
    cheaper = from_source.work <= from_target.work  # [groups]
    here, there, edge = from_source.search(links, cheaper, reverse=False)
    back, forth, other = from_target.search(links, ~cheaper, reverse=True)
    return torch.cat([here, forth]), torch.cat([there, back]), torch.cat([edge, other])


class _Side:
    """A search from some rows for those of others that they share an edge with."""

    def __init__(self, adjacency: Adjacency, rows: Keys, starts: Tensor, ends: Tensor) -> None:
        self.adjacency, self.rows, self.starts, self.ends = adjacency, rows, starts, ends
        self.group = rows.group[starts]
        self.ptr = pointers(rows.group[ends], rows.num_groups)  # of the ends of each color
        node = rows.node[starts]
        self.degree = adjacency.ptr[node + 1] - adjacency.ptr[node]  # not of all nodes: there may be millions
        self.others = self.ptr.diff()[self.group]
        looked_at = torch.minimum(self.degree, self.others).double()
        self.work = torch.zeros(rows.num_groups, dtype=torch.double, device=starts.device)
        self.work.index_add_(0, self.group, looked_at)

    def search(self, links: Lookup, chosen: Tensor, reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Start, end and id of each edge of the chosen colors; `reverse`: edges lead from the ends to the starts."""
        rows, mine = self.rows, chosen[self.group]
        few = mine & (self.degree <= self.others)
        start = self.starts[few]
        owner, position = self.adjacency.expand(rows.node[start])
        color = (rows.key - rows.node)[start].index_select(0, owner)  # color * num_nodes
        place, there = contains(rows.key[self.ends], color + self.adjacency.neighbor.index_select(0, position))
        found = start[owner[there]], self.ends[place[there]], self.adjacency.edge[position[there]]

        many = mine & (self.degree > self.others)
        owner, position = spread(self.ptr[self.group[many]], self.others[many])
        start, end = self.starts[many][owner], self.ends[position]
        ends = (rows.node[end], rows.node[start]) if reverse else (rows.node[start], rows.node[end])
        pair, edge = links.find(*ends)
        return torch.cat([found[0], start[pair]]), torch.cat([found[1], end[pair]]), torch.cat([found[2], edge])
