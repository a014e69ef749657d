r"""The rounds of a network over several node types, edge type by edge type: each is a :class:`Round` of its own.

Any operator of :mod:`idgnn.layers` runs on such a round. The result of an edge type is a function of the messages of
that type and of the own states of the targets, so that rows take over sums of plain messages, and exchange those that
the color changes, edge type by edge type.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import distinct, inverse
from idgnn.identity.hetero.schedule import by_type
from idgnn.identity.hetero.types import TypedGraph
from idgnn.identity.schedule import Exchange, Messages, Round, Schedule, group_messages


@dataclass(frozen=True)
class EdgeRound:
    """One round of one edge type, between rows of its two node types. Edges are numbered within their type."""

    edge_type: int
    rows: Tensor  # [sources of the round] among the sources of all types; targets bring own states as sources, too
    round: Round
    received: Tensor  # [targets] the number of messages of this type


@dataclass(frozen=True)
class TypedTargets:
    """The targets of one node type, and the rounds of the edge types that lead there."""

    node_type: int
    previous: Tensor  # [targets] the source row that holds the target's own state before this round
    colored: Tensor  # [colored targets] among these
    edge_types: tuple[EdgeRound, ...]


@dataclass(frozen=True)
class EdgeRoundSchedule:
    """All rounds: they start from one row for each of `node`, ordered by type, as the targets of each round are."""

    node: Tensor  # [rows] of all types as one graph
    segments: tuple[tuple[int, int], ...]  # (node type, number of rows)
    rounds: tuple[tuple[TypedTargets, ...], ...]
    answer: Tensor  # [queries]

    @property
    def num_rows(self) -> int:
        """The rows that are computed in all rounds together."""
        return sum(part.previous.numel() for round_ in self.rounds for part in round_)


def edge_round_schedule(schedule: Schedule, typed: TypedGraph, gradients: bool) -> EdgeRoundSchedule:
    """A schedule of all types as one graph, whose plain states are not known, by type. Linear in the messages."""
    node = schedule.node
    order, segments = by_type(node, 0, typed)
    first, rounds, degree = node.index_select(0, order), [], type_degrees(typed)
    for round_ in schedule.rounds:
        place = inverse(order)
        node = node.index_select(0, round_.previous)  # of the targets
        order, parts = by_type(node, 0, typed)
        edges = _Edges(round_, typed, degree, gradients)
        found, start = [], 0
        for kind, count in parts:
            found.append(edges.into(kind, order[start : start + count], node, place))
            start += count
        rounds.append(tuple(found))
    return EdgeRoundSchedule(first, segments, tuple(rounds), inverse(order).index_select(0, schedule.answer))


class _Edges:
    """The messages of one round, taken out edge type by edge type."""

    def __init__(self, round_: Round, typed: TypedGraph, degree: Tensor, gradients: bool) -> None:
        self.round, self.typed, self.degree, self.gradients = round_, typed, degree, gradients

    def into(self, kind: int, targets: Tensor, node: Tensor, place: Tensor) -> TypedTargets:
        """The rounds of all edge types that end at `targets`, which are all of a node type."""
        schema = self.typed.schema
        there = torch.full((self.round.num_targets,), -1, device=targets.device)
        there[targets] = torch.arange(targets.numel(), device=targets.device)
        previous = self.round.previous.index_select(0, targets)
        build = self._direct if self.round.exchange is None else self._exchanged
        found = []
        for number, (_, _, end) in enumerate(schema.edge_types):
            if end == schema.node_types[kind]:
                received = self.degree[number].index_select(0, node.index_select(0, targets))
                rows, round_ = build(number, targets, there, previous, received)
                found.append(EdgeRound(number, place.index_select(0, rows), round_, received))
        colored = (previous >= self.round.split).nonzero().flatten()
        return TypedTargets(kind, place.index_select(0, previous), colored, tuple(found))

    def _direct(
        self, number: int, targets: Tensor, there: Tensor, previous: Tensor, received: Tensor
    ) -> tuple[Tensor, Round]:
        """Every target receives all of its messages of the type."""
        split, count = self.round.split, targets.numel()
        source, target, edge = self._take(self.round.plain, number)
        plain, source = distinct(source, max(split, 1))
        num_plain = plain.numel() + count
        colored, messages = self._colored(number, there, count)
        rows = torch.cat([plain, previous, colored + split])
        into = group_messages(source, there[target], edge, num_plain, count, self.gradients)
        own = torch.arange(plain.numel(), num_plain, device=rows.device)
        return rows, Round(rows.numel(), count, num_plain, into, messages, own)

    def _exchanged(
        self, number: int, targets: Tensor, there: Tensor, previous: Tensor, received: Tensor
    ) -> tuple[Tensor, Round]:
        """Every target takes the sum of its node's plain messages of the type, and the messages that differ."""
        round_, exchange, count = self.round, self.round.exchange, targets.numel()
        assert exchange is not None
        bases, base = distinct(exchange.base.index_select(0, targets), max(round_.plain.ptr.numel() - 1, 1))
        of_base = torch.full((round_.plain.ptr.numel() - 1,), -1, device=targets.device)
        of_base[bases] = torch.arange(bases.numel(), device=targets.device)
        source, target, edge = self._take(round_.plain, number)
        wanted = (of_base[target] >= 0).nonzero().flatten()
        source, target, edge = (each.index_select(0, wanted) for each in (source, target, edge))
        own, changed = self._senders(exchange.changes, number, there, round_.split - exchange.num_plain, count)
        colored, messages = self._colored(number, there, count)
        colored_own = colored + round_.split - exchange.num_plain
        twins = exchange.twin.index_select(0, torch.cat([own, colored_own]))
        plain, place = distinct(torch.cat([source, twins]), max(exchange.num_plain, 1))
        source, twin = place.split([source.numel(), twins.numel()])
        num_plain = plain.numel() + count
        rows = torch.cat([plain, previous, own + exchange.num_plain, colored + round_.split])
        into = group_messages(source, of_base[target], edge, num_plain, bases.numel(), self.gradients)
        mine = torch.arange(plain.numel(), num_plain, device=rows.device)
        every = torch.arange(count, device=rows.device)  # own states are read from where they are, arrived or not
        return rows, Round(
            rows.numel(),
            count,
            num_plain + own.numel(),
            into,
            messages,
            mine,
            Exchange(num_plain, twin, base, changed, received, exchange.node.index_select(0, bases), every, None),
        )

    def _colored(self, number: int, there: Tensor, count: int) -> tuple[Tensor, Messages]:
        """The colored senders, counted from the first one, and their messages."""
        return self._senders(self.round.colored, number, there, self.round.num_sources - self.round.split, count)

    def _senders(
        self, messages: Messages, number: int, there: Tensor, size: int, count: int
    ) -> tuple[Tensor, Messages]:
        source, target, edge = self._take(messages, number)
        sender, source = distinct(source, max(size, 1))
        return sender, group_messages(source, there[target], edge, sender.numel(), count, self.gradients)

    def _take(self, messages: Messages, number: int) -> tuple[Tensor, Tensor, Tensor]:
        """Source, target and edge, within its type, of the messages of an edge type."""
        mine = (self.typed.edge_type.index_select(0, messages.edge) == number).nonzero().flatten()
        first = self.typed.first_edges[self.typed.schema.edge_types[number]]
        edge = messages.edge.index_select(0, mine) - first
        return messages.source.index_select(0, mine), messages.target.index_select(0, mine), edge


def type_degrees(typed: TypedGraph) -> Tensor:
    """The number of messages of each edge type into each node `[edge types, nodes]`."""
    count = len(typed.num_edges)
    key = typed.edge_type * typed.total + typed.edge_index[1]
    return torch.bincount(key, minlength=count * typed.total).view(count, typed.total)
