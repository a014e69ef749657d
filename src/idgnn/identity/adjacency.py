"""Neighbor lists as flat tensors, and graphs indexed by them: the neighbors of many nodes, or many edges, at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

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

    def degree_of(self, nodes: Tensor) -> Tensor:
        """Number of neighbors of some nodes, without a look at the others."""
        return self.ptr.index_select(0, nodes + 1) - self.ptr.index_select(0, nodes)

    def walk_sums(self, values: Tensor, length: int) -> Tensor:
        """For each node the sum of `values` over the ends of all walks of at most `length` steps from it.

        It is an upper bound on what a search of that depth finds, for all nodes at once: `length` sums over the edges.
        Beyond `_STEPS` steps the bound is infinite.
        """
        reached = total = values.double()
        for step in range(length):
            if step == _STEPS:
                return total.masked_fill(reached > 0, torch.inf)
            reached = torch.segment_reduce(reached.index_select(0, self.neighbor), "sum", offsets=self.ptr, initial=0)
            total = total + reached
        return total

    def expand(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """All neighbors of all `nodes`: which of the nodes each belongs to, and its position in the flat lists."""
        # index_select: on a CPU it takes a fraction of the time of indexing with brackets.
        start = self.ptr.index_select(0, nodes)
        return spread(start, self.ptr.index_select(0, nodes + 1) - start)


class IndexedGraph:
    """A graph with the neighbors of its nodes in both directions, in which an edge is found by its ends.

    Args:
        edge_index: `[2, num_edges]`.
        num_nodes: Number of nodes.
        self_loops: Whether every node has exactly one self-loop, as layers such as GCN see the graph. It is edge
            `num_edges + node`, and replaces the self-loops that the graph has.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, self_loops: bool = False) -> None:
        self.num_nodes, self.num_edges, self.self_loops = num_nodes, edge_index.size(1), self_loops
        self.num_ids = self.num_edges + (num_nodes if self_loops else 0)  # of edges and self-loops
        edge = torch.arange(self.num_edges, device=edge_index.device)
        if self_loops:
            other = edge_index[0] != edge_index[1]
            node = torch.arange(num_nodes, device=edge.device)
            edge_index = torch.cat([edge_index[:, other], node.expand(2, -1)], dim=1)
            edge = torch.cat([edge[other], self.num_edges + node])
        self._source, self._target, self._edge = *edge_index, edge
        # Each node keeps its edges in the order in which they were given, its self-loop last.
        self.into = group_edges(self._target, self._source, edge, num_nodes)
        self.cache: dict[str, Any] = {}  # what else is worked out once for the graph

    @cached_property
    def out(self) -> Adjacency:
        """The out-neighbors of every node, in any order. Costs a sort of the edges, unless `reverse` is known."""
        reverse: Tensor | None = vars(self).get("reverse")
        if reverse is not None:  # then they are its in-neighbors
            return Adjacency(self.into.ptr, self.into.neighbor, reverse.index_select(0, self.into.edge))
        return group_edges(self._source, self._target, self._edge, self.num_nodes)

    @cached_property
    def symmetric(self) -> bool:
        """Whether every edge has its reverse, duplicates aside."""
        if self.reverse is not None:
            return True
        (key, _), (reverse, _) = self._sorted, self._sorted_by_source
        return torch.equal(key.unique_consecutive(), reverse.unique_consecutive())

    @cached_property
    def reverse(self) -> Tensor | None:
        """The id of the reverse of each edge, by its id; `None` if the edges do not come in such pairs."""
        (key, edge), (reverse_key, reverse_edge) = self._sorted, self._sorted_by_source
        if not torch.equal(key, reverse_key):
            return None
        return edge.new_empty(self.num_ids).index_copy_(0, edge, reverse_edge)

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor]:
        """The edges as numbers `target * num_nodes + source`, sorted, and their ids in that order."""
        key, order = sort_stable(self._target * self.num_nodes + self._source)
        return key, self._edge if order is None else self._edge.index_select(0, order)

    @cached_property
    def _sorted_by_source(self) -> tuple[Tensor, Tensor]:
        """The edges as numbers `source * num_nodes + target`, sorted, and their ids in that order."""
        key, order = sort_stable(self._source * self.num_nodes + self._target)
        return key, self._edge if order is None else self._edge.index_select(0, order)

    @cached_property
    def ascending(self) -> tuple[Adjacency, Adjacency]:
        """Every edge once, at its end of lower degree: as an edge out of that node, or as an edge into it.

        Self-loops are among the edges out. Of `E` edges, no node has more than about `2 sqrt(E)` in such a list,
        parallel edges aside, however high its degree is.
        """
        degree = self.into.degree + torch.bincount(self._source, minlength=self.num_nodes)
        source, target = degree.index_select(0, self._source), degree.index_select(0, self._target)
        up = (source < target) | ((source == target) & (self._source <= self._target))
        ends = self._source, self._target, self._edge
        here, there, edge = (each[up] for each in ends)
        out = group_edges(here, there, edge, self.num_nodes)
        there, here, edge = (each[~up] for each in ends)
        return out, group_edges(here, there, edge, self.num_nodes)

    @cached_property
    def position_of_edge(self) -> Tensor:
        """Where each edge is in the flat lists of `into`, by its id."""
        position = self._edge.new_empty(self.num_ids)
        position[self.into.edge] = torch.arange(self._edge.numel(), device=self._edge.device)
        return position


def incoming(edge_index: Tensor, num_nodes: int) -> Adjacency:
    """The in-neighbors of every node, in the order of the edges."""
    edge = torch.arange(edge_index.size(1), device=edge_index.device)
    return group_edges(edge_index[1], edge_index[0], edge, num_nodes)


def group_edges(by: Tensor, neighbor: Tensor, edge: Tensor, num_groups: int) -> Adjacency:
    """Edges grouped by one of their ends; each group keeps its edges in the order in which they were given."""
    # Numbers of 32 bits are sorted in about half of the time.
    by, order = sort_stable(by.to(torch.int32) if num_groups < 2**31 else by)
    if order is None:
        return Adjacency(pointers(by, num_groups), neighbor, edge)
    return Adjacency(pointers(by, num_groups), neighbor.index_select(0, order), edge.index_select(0, order))


def sort_stable(values: Tensor) -> tuple[Tensor, Tensor | None]:
    """The values sorted, and their order; `None` if they are sorted already, as the edges of most datasets are.

    On a CPU a look at them takes a hundredth of the time of sorting; on a GPU the CPU would wait for it.
    """
    if values.device.type == "cpu" and bool((values[1:] >= values[:-1]).all()):
        return values, None
    return torch.sort(values, stable=True)


def is_symmetric(edge_index: Tensor, num_nodes: int) -> bool:
    """Whether every edge has its reverse, duplicates aside."""
    return IndexedGraph(edge_index, num_nodes).symmetric


def spread(first: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The ranges `first[i] ... first[i] + count[i] - 1` one after the other: which range, and the number in it."""
    owner = torch.repeat_interleave(count)
    skip = first - count.cumsum(0) + count
    return owner, skip.index_select(0, owner) + torch.arange(owner.numel(), device=owner.device)


def pointers(index: Tensor, size: int) -> Tensor:
    """Where each of `size` groups starts and ends in a sorted `index`: `[size + 1]`."""
    count = torch.bincount(index, minlength=size)
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


def groups(ptr: Tensor, size: int) -> Tensor:
    """The group of each of `size` entries, of which each group has those from one pointer to the next.

    Entries behind the last pointer are padding, and go to the last group.
    """
    if not size:
        return ptr[:0]
    count = ptr[:-1].diff(append=ptr.new_full((1,), size))
    return torch.repeat_interleave(count, output_size=size)


def inverse(order: Tensor) -> Tensor:
    """Where each element went: `inverse(order)[order] = 0, 1, 2, ...`."""
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel(), device=order.device)
    return place


def contains(sorted_keys: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """For each key, its position among the sorted ones, and whether it is one of them."""
    if sorted_keys.numel() == 0:
        return torch.zeros_like(key), torch.zeros_like(key, dtype=torch.bool)
    position = torch.searchsorted(sorted_keys, key).clamp_(max=sorted_keys.numel() - 1)
    return position, sorted_keys.index_select(0, position) == key


def find_among(sorted_keys: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Which of the keys are among the sorted ones, and where: positions in `key` and in `sorted_keys`.

    For many keys of which few are there. A table of hashes that fits into the cache rules most of them out; for 32,000
    sorted keys that takes 2 ns a key, and the search 75 ns.
    """
    bits = min(max((32 * sorted_keys.numel()).bit_length(), 10), 24)
    seen = torch.zeros(2**bits, dtype=torch.bool, device=key.device)
    seen[_hash(sorted_keys, bits)] = True
    found = seen.index_select(0, _hash(key, bits)).nonzero().flatten()
    place, there = contains(sorted_keys, key.index_select(0, found))
    there = there.nonzero().flatten()
    return found.index_select(0, there), place.index_select(0, there)


def _hash(key: Tensor, bits: int) -> Tensor:
    """Some bits of a product with an odd number that mixes them (Fibonacci hashing)."""
    mixed = key * -0x61C8864680B583EB
    mixed >>= 63 - bits
    return mixed.bitwise_and_(2**bits - 1)


def distinct(ids: Tensor, size: int, last: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The different ids, all below `size`, in order, and the position of each of the given ones among them.

    Those that are marked in `last` `[size]` come behind all others; if it holds numbers 0, 1, 2, in their order.
    """
    few = 8 * ids.numel() < size  # then marks would take longer than sorting them
    if few:
        found, place = torch.unique(ids, return_inverse=True)
    else:
        needed = torch.zeros(size, dtype=torch.bool, device=ids.device)
        needed[ids] = True
        found, place = needed.nonzero().flatten(), None
    every, order = torch.arange(found.numel(), device=ids.device), None
    if last is not None:
        behind, marks = last.index_select(0, found), 2 if last.dtype == torch.bool else 3
        order = torch.cat([(behind == mark).nonzero().flatten() for mark in range(marks)])
    if place is None:  # by a table of all ids, so that each is looked up once
        found = found if order is None else found.index_select(0, order)
        table = torch.empty(size, dtype=torch.long, device=ids.device)
        table[found] = every
        return found, table.index_select(0, ids)
    if order is None:
        return found, place
    return found.index_select(0, order), inverse(order).index_select(0, place)
