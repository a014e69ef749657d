"""The part of a large graph that the answers to a few queries depend on, whole or sampled, with ids of its own.

What `K` rounds compute at a node depends on the nodes from which it is reached in `K` steps, and on nothing else. No
work here is proportional to the whole graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from idgnn.identity.adjacency import Adjacency, IndexedGraph, contains, groups, spread


@dataclass(frozen=True)
class Neighborhood:
    """Some nodes of a graph and the edges into all but the boundary nodes, those that were found last.

    Nodes are numbered in the order in which they were found: the queried ones, then hop by hop, sorted within a hop.
    Edges are numbered by target.
    """

    node: Tensor  # [nodes] of the whole graph
    edge: Tensor  # [edges] of the whole graph
    into: Adjacency  # between the new numbers
    missing: Tensor | None  # [nodes] the number of in-neighbors for each one that was drawn; None: all are there

    @property
    def edge_index(self) -> Tensor:
        """Between the new ids `[2, edges]`."""
        return torch.stack([self.into.neighbor, groups(self.into.ptr, self.edge.numel())])

    def graph(self) -> IndexedGraph:
        """Indexed by the new ids: costs a few sorts of the edges."""
        return IndexedGraph(self.edge_index, self.node.numel())

    def number(self, node: Tensor) -> Tensor:
        """The new ids of nodes; -1 for those that are not among them."""
        found, order = torch.sort(self.node)
        place, there = contains(found, node)
        return torch.where(there, order.index_select(0, place), -1)


@dataclass(frozen=True)
class Caps:
    """At most so many in-neighbors of each node that a hop comes to, drawn without replacement; -1 is all of them."""

    fanout: Sequence[int]  # [hops]
    generator: Generator
    loops: bool  # whether each node has one self-loop, last of its edges: it stays, and is not counted


def neighborhood(into: Adjacency, start: Tensor, hops: int, caps: Caps | None = None) -> Neighborhood:
    """All that is `hops` steps or less away from the nodes `start`, with all edges into what is nearer than that.

    A node has its in-neighbors drawn once, at the hop that finds it.
    """
    frontier = known = torch.unique(start)
    nodes, counts, positions, rates = [frontier], [], [], []
    for hop in range(hops):
        most = -1 if caps is None else caps.fanout[hop]
        count, position, rate = (
            _all(into, frontier) if caps is None or most == -1 else _drawn(into, frontier, most, caps)
        )
        counts.append(count)
        positions.append(position)
        rates.append(rate)
        found = torch.unique(into.neighbor.index_select(0, position))
        frontier = found[~contains(known, found)[1]]
        known = torch.sort(torch.cat([known, frontier])).values
        nodes.append(frontier)
    node, position = torch.cat(nodes), torch.cat(positions)
    count = torch.cat([*counts, torch.zeros_like(frontier)])  # boundary nodes receive no messages
    ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    every = torch.arange(position.numel())
    order = torch.argsort(node)
    neighbor = order.index_select(0, torch.searchsorted(known, into.neighbor.index_select(0, position)))
    missing = None if caps is None else torch.cat([*rates, torch.ones(frontier.numel(), dtype=torch.double)])
    return Neighborhood(node, into.edge.index_select(0, position), Adjacency(ptr, neighbor, every), missing)


def _all(into: Adjacency, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """How many edges lead into each node, their positions in the flat lists, and how many each of them stands for."""
    count = into.ptr.index_select(0, nodes + 1) - into.ptr.index_select(0, nodes)
    return count, into.expand(nodes)[1], torch.ones(nodes.numel(), dtype=torch.double)


def _drawn(into: Adjacency, nodes: Tensor, most: int, caps: Caps) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`_all`, for at most so many edges into each node."""
    start = into.ptr.index_select(0, nodes)
    degree = into.ptr.index_select(0, nodes + 1) - start - int(caps.loops)  # loops are the last edges, and stay
    many = (degree > most).nonzero().flatten()
    chosen = _choose(degree.index_select(0, many), most, caps.generator)
    count = degree.clamp(max=most) + int(caps.loops)
    _, position = spread(start, count)
    # The first `most` places of a node with many in-neighbors go to those that were drawn, its loop keeps the last.
    place = (count.cumsum(0) - count).index_select(0, many)
    position[place.unsqueeze(1) + torch.arange(most)] = chosen + start.index_select(0, many).unsqueeze(1)
    if caps.loops:
        position[place + most] = (start + degree).index_select(0, many)
    rate = torch.ones(nodes.numel(), dtype=torch.double)
    rate[many] = degree.index_select(0, many).double() / most
    return count, position, rate


def _choose(size: Tensor, most: int, generator: Generator) -> Tensor:
    """For each size `most` different whole numbers below it, in order: `[sizes, most]`.

    Floyd's algorithm, for all sizes at once: the i-th number is drawn below `size - most + i + 1`, and where it is
    there already, `size - most + i` is taken, which cannot be. It costs no more for a hub than for any other node.
    """
    random = torch.rand(size.numel(), most, generator=generator, dtype=torch.double)
    chosen = torch.empty(size.numel(), most, dtype=torch.long)
    for i in range(most):
        last = size - most + i
        drawn = (random[:, i] * (last + 1)).long()
        taken = (chosen[:, :i] == drawn.unsqueeze(1)).any(dim=1)
        chosen[:, i] = torch.where(taken, last, drawn)
    return chosen.sort(dim=1).values
