"""Some targets of a round and all that they hear: plain states are shared by all chunks, others belong to one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, pointers
from idgnn.identity.cone import contains
from idgnn.identity.lookup import Keys, Lookup
from idgnn.identity.rounds import Messages, has_hubs


@dataclass(frozen=True)
class States:
    """The states before a round: of all nodes without a color, and of the rows of a chunk that have one of their own.

    A state goes by a number: `u` for the plain state of node u, `num_nodes + i` for the i-th own row, and again as many
    on for a colored one. So sorted numbers are plain senders first, colored senders last.
    """

    plain: Tensor  # [num_nodes, channels]
    own: Tensor  # [own rows, channels]
    key: Tensor  # [own rows] color * num_nodes + node, sorted
    colored: Tensor  # [own rows]

    @staticmethod
    def of_nodes(plain: Tensor) -> States:
        """No row has a state of its own."""
        none = torch.empty(0, dtype=torch.long, device=plain.device)
        return States(plain, plain[:0], none, none.bool())

    @property
    def first_colored(self) -> int:
        """The number from which on messages are colored."""
        return self.plain.size(0) + self.key.numel()

    def number(self, key: Tensor, node: Tensor) -> Tensor:
        """Of the rows `key`, copies of `node`: their own state where they have one, else the plain one."""
        if self.key.numel() == 0:
            return node
        place, there = contains(self.key, key)
        own = place + self.plain.size(0) + self.key.numel() * self.colored.index_select(0, place)
        return torch.where(there, own, node)

    def take(self, number: Tensor) -> Tensor:
        """The states with these numbers, sorted: `[numbers, channels]`."""
        num_nodes = self.plain.size(0)
        plain, own = number.split([split := int((number < num_nodes).sum()), number.numel() - split])
        if own.numel() == 0:
            return self.plain.index_select(0, plain)
        own = self.own.index_select(0, (own - num_nodes) % self.key.numel())
        return torch.cat([self.plain.index_select(0, plain), own])


@dataclass(frozen=True)
class Part:
    """What some targets receive, message by message."""

    number: Tensor  # [sources] of the states that are read, sorted, none twice
    source: Tensor  # [messages] position in `number`
    target: Tensor  # [messages] sorted
    edge: Tensor  # [messages] the edge of the original graph
    previous: Tensor  # [targets] position in `number` of the target's own state


def part_of(links: Lookup, states: States, node: Tensor, color: Tensor | None) -> Part:
    """The targets are copies of `node` `[targets]` under the colors `color * num_nodes`, or plain (`None`)."""
    target, position = links.into.expand(node)
    neighbor = links.into.neighbor.index_select(0, position)
    if color is None:
        source, previous = neighbor, node
    else:
        source = states.number(color.index_select(0, target) + neighbor, neighbor)
        previous = states.number(color + node, node)
    number, place = torch.unique(torch.cat([source, previous]), return_inverse=True)
    source, previous = place.split([source.numel(), previous.numel()])
    return Part(number, source, target, links.into.edge.index_select(0, position), previous)


def messages(source: Tensor, target: Tensor, num_targets: int, edge: Tensor) -> Messages:
    """Messages sorted by target. No gradient is asked for, so they are not sorted by source as well."""
    ptr, unsorted = pointers(target, num_targets), Adjacency(source[:0], source[:0], source[:0])
    return Messages(source, ptr, edge, unsorted, has_hubs(source.numel(), ptr))


def degree_of(adjacency: Adjacency, node: Tensor) -> Tensor:
    """The number of neighbors of some nodes."""
    return adjacency.ptr.index_select(0, node + 1) - adjacency.ptr.index_select(0, node)


def colors_of(rows: Keys, chosen: Tensor) -> Tensor:
    """`color * num_nodes` of some rows."""
    return rows.key.index_select(0, chosen) - rows.node.index_select(0, chosen)
