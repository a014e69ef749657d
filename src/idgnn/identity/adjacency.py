"""Neighbor lists as flat tensors, and the one operation all else is made of: the neighbors of many rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_STEPS = 64  # of walks that are counted


@dataclass(frozen=True)
class Adjacency:
    """The neighbors of node `i` are `neighbor[ptr[i]:ptr[i + 1]]`, over the edges `edge[ptr[i]:ptr[i + 1]]`."""

    ptr: Tensor  # [num_nodes + 1]
    neighbor: Tensor  # [num_edges]
    edge: Tensor  # [num_edges]

    @property
    def degree(self) -> Tensor:
        """Number of neighbors of each node, duplicates counted."""
        return self.ptr.diff()

    def walk_sums(self, values: Tensor, length: int) -> Tensor:
        """For each node the sum of `values` over the ends of all walks of at most `length` steps from it.

        It bounds what a search of that depth can come across, for all nodes at once: `length` sums over the edges.
        Nobody needs so many that it would take long: what goes on after `_STEPS` steps is infinite.
        """
        node = groups(self.ptr, self.neighbor.numel())
        reached = total = values.double()
        for step in range(length):
            if step == _STEPS:
                return total.masked_fill(reached > 0, torch.inf)
            reached = torch.zeros_like(reached).index_add(0, node, reached[self.neighbor])
            total = total + reached
        return total

    def expand(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """All neighbors of all `nodes`: which of the nodes each belongs to, and its position in the flat lists."""
        # index_select: on a CPU it takes a fraction of the time of indexing with brackets.
        start = self.ptr.index_select(0, nodes)
        return spread(start, self.ptr.index_select(0, nodes + 1) - start)


@dataclass(frozen=True)
class Links:
    """A graph with the neighbors of its nodes in both directions at hand."""

    edge_index: Tensor  # [2, num_edges]
    num_nodes: int
    into: Adjacency
    out: Adjacency

    @staticmethod
    def of(edge_index: Tensor, num_nodes: int) -> Links:
        """Costs two sorts of the edges."""
        return Links(edge_index, num_nodes, incoming(edge_index, num_nodes), outgoing(edge_index, num_nodes))


def incoming(edge_index: Tensor, num_nodes: int) -> Adjacency:
    """The in-neighbors of every node, in the order of the edges."""
    return _grouped(edge_index[1], edge_index[0], num_nodes)


def outgoing(edge_index: Tensor, num_nodes: int) -> Adjacency:
    """The out-neighbors of every node, in the order of the edges."""
    return _grouped(edge_index[0], edge_index[1], num_nodes)


def is_symmetric(edge_index: Tensor, num_nodes: int) -> bool:
    """Whether every edge has its reverse, duplicates aside."""
    source, target = edge_index
    ahead, back = (source * num_nodes + target).sort().values, (target * num_nodes + source).sort().values
    return torch.equal(ahead, back) or torch.equal(ahead.unique_consecutive(), back.unique_consecutive())


def spread(first: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The ranges `first[i] ... first[i] + count[i] - 1` one after the other: which range, and the number in it."""
    owner = torch.repeat_interleave(count)
    skip = first - count.cumsum(0) + count
    return owner, skip.index_select(0, owner) + torch.arange(owner.numel(), device=owner.device)


def pointers(index: Tensor, size: int) -> Tensor:
    """Where each of `size` groups starts and ends in a sorted `index`: `[size + 1]`."""
    return torch.cat([index.new_zeros(1), torch.bincount(index, minlength=size).cumsum(0)])


def groups(ptr: Tensor, size: int) -> Tensor:
    """The group of each of `size` entries, of which each group has those from one pointer to the next."""
    return torch.repeat_interleave(ptr.diff(), output_size=size)


def _grouped(by: Tensor, neighbor: Tensor, num_nodes: int) -> Adjacency:
    # Stable, so that each node keeps its edges in the order in which they were given.
    by, edge = torch.sort(by, stable=True)
    return Adjacency(pointers(by, num_nodes), neighbor[edge], edge)
