"""The schedule of many graphs, out of which the schedule of any of them is cut."""

from __future__ import annotations

from itertools import pairwise

import torch

from idgnn.identity.adjacency import Adjacency, groups
from idgnn.identity.cutting import Cut, Cutter, Field, Pointers, Space, Store, blocks_of
from idgnn.identity.padded_cut import PaddedCut
from idgnn.identity.schedule import Exchange, Messages, Round, Schedule


class StackedSchedule:
    """A schedule whose graphs share no edges, laid out in the spaces of a :class:`Cutter`.

    Args:
        schedule: That of all graphs.
        nodes: The space of their nodes.
        cutter: Gets the spaces of rows, messages and queries.
    """

    def __init__(self, schedule: Schedule, nodes: Space, cutter: Cutter) -> None:
        distinct = list({id(round_): round_ for round_ in schedule.rounds}.values())
        owner = nodes.owner[schedule.node]
        sources = cutter.space(owner, blocks_of(owner, *_splits(distinct[0])), aligned=True)
        self.node = cutter.field(sources, schedule.node, nodes)
        self.rounds: list[StackedRound] = []
        for i, round_ in enumerate(distinct):
            if len(distinct) < len(schedule.rounds):
                targets = sources  # a network on all rows has one round, many times
            else:
                owner = sources.owner[round_.previous]
                splits = _splits(distinct[i + 1]) if i + 1 < len(distinct) else ()
                targets = cutter.space(owner, blocks_of(owner, *splits), aligned=True)
            self.rounds.append(StackedRound(round_, sources, targets, nodes, cutter))
            sources = targets
        self.times = len(schedule.rounds) // len(distinct)
        self.queries = cutter.space(sources.owner[schedule.answer])
        self.answer = cutter.field(self.queries, schedule.answer, sources)

    def row_segments(self, store: Store) -> list[slice]:
        """For the targets of each round, their segments among all that the store has."""
        return [store.segments_of(round_.targets.number) for round_ in self.rounds]

    def color_segments(self, store: Store) -> list[list[int]]:
        """The segments of the colored messages of each round, by target and by source."""
        spaces = [(round_.colored.source.space, round_.colored.target.space) for round_ in self.rounds]
        return [[store.segments_of(space).start for space in both] for both in spaces]

    def colored_row_segments(self, store: Store) -> list[slice]:
        """The segments of the sources of each color in each round."""
        found = []
        for round_ in self.rounds:
            rows = store.segments_of(round_.sources.number)
            second = () if round_.first_blocks is None else (rows.start + round_.first_blocks,)
            ends = (rows.start + round_.plain_blocks, *second, rows.stop)
            found += [slice(*both) for both in pairwise(ends)]
        return found

    def cut(self, cut: Cut | PaddedCut) -> Schedule:
        """The schedule of the graphs that were cut out."""
        rounds = tuple(round_.cut(cut) for round_ in self.rounds)
        return Schedule(cut[self.node], rounds * self.times, cut[self.answer])


def _splits(round_: Round) -> tuple[int, ...]:
    """Where runs of sources begin: rows with states of their own, and colored rows, color by color."""
    second = () if round_.second is None else (round_.second,)
    plain = () if round_.exchange is None else (round_.exchange.num_plain,)
    return (*plain, round_.split, *second)


class StackedRound:
    """One round, from the space of its source rows to that of its target rows."""

    def __init__(self, round_: Round, sources: Space, targets: Space, nodes: Space, cutter: Cutter) -> None:
        self.sources, self.targets, exchange = sources, targets, round_.exchange
        self.plain_blocks = _blocks_before(sources, round_.split)
        self.first_blocks = None if round_.second is None else _blocks_before(sources, round_.second)
        self.previous = cutter.field(targets, round_.previous, sources)
        self.in_order = round_.in_order and sources is targets  # else the blocks of the two may be padded differently
        changes = [] if exchange is None else [exchange.changes]
        degrees = [messages.back.degree for messages in (round_.plain, *changes, round_.colored)]
        sent = cutter.field(sources, torch.cat(degrees))  # by each source
        self.exchange = None
        if exchange is None:
            by_source = cutter.pointers(sent, 0, self.plain_blocks)
            self.plain = StackedMessages(round_.plain, 0, by_source, sources, targets, cutter)
        else:
            self.exchange = StackedExchange(round_, exchange, sent, sources, targets, nodes, cutter)
        by_source = cutter.pointers(sent, self.plain_blocks)
        self.colored = StackedMessages(round_.colored, round_.split, by_source, sources, targets, cutter)

    def cut(self, cut: Cut | PaddedCut) -> Round:
        """The round of the graphs that were cut out."""
        split, exchange = sum(cut.sizes[self.sources.number][: self.plain_blocks]), None
        num_sources, num_targets = cut.size(self.sources), cut.size(self.targets)
        if self.exchange is None:
            plain = self.plain.cut(cut)
        else:
            plain, exchange = self.exchange.cut(cut)
        colored, real = self.colored.cut(cut), cut.real(self.targets)
        second = None if self.first_blocks is None else sum(cut.sizes[self.sources.number][: self.first_blocks])
        sizes, previous, order = (num_sources, num_targets, split), cut[self.previous], self.in_order
        return Round(*sizes, plain, colored, previous, exchange, second=second, real=real, in_order=order)


class StackedExchange:
    """The plain messages of a round to its bases, and what rows with states of their own exchange."""

    def __init__(
        self,
        round_: Round,
        exchange: Exchange,
        sent: Field,
        sources: Space,
        targets: Space,
        nodes: Space,
        cutter: Cutter,
    ) -> None:
        self.sources, num_plain = sources, exchange.num_plain
        self.plain_blocks = _blocks_before(sources, num_plain)
        bases = cutter.space(nodes.owner[exchange.node])
        every = torch.arange(num_plain, device=exchange.twin.device)
        self.node = cutter.field(bases, exchange.node, nodes)
        self.twin = cutter.field(sources, torch.cat([every, exchange.twin]), sources, block=0)
        self.base = cutter.field(targets, exchange.base, bases)
        self.received = cutter.field(targets, exchange.received)
        assert exchange.base_row is not None
        self.base_row = cutter.field(bases, exchange.base_row, sources, block=0)
        self.arrived_targets = cutter.space(targets.owner[exchange.arrived], targets.block[exchange.arrived])
        self.arrived = cutter.field(self.arrived_targets, exchange.arrived, targets)
        by_plain = cutter.pointers(sent, 0, self.plain_blocks)
        by_own = cutter.pointers(sent, self.plain_blocks, _blocks_before(sources, round_.split))
        self.plain = StackedMessages(round_.plain, 0, by_plain, sources, bases, cutter)
        self.changes = StackedMessages(exchange.changes, num_plain, by_own, sources, targets, cutter)

    def cut(self, cut: Cut | PaddedCut) -> tuple[Messages, Exchange]:
        """Those of the graphs that were cut out."""
        first = sum(cut.sizes[self.sources.number][: self.plain_blocks])
        exchange = Exchange(
            first,
            cut[self.twin][first:],
            cut[self.base],
            self.changes.cut(cut),
            cut[self.received],
            cut[self.node],
            cut[self.arrived],
            cut[self.base_row],
        )
        return self.plain.cut(cut), exchange


class StackedMessages:
    """Messages in two orders, each a space: by target, and by source for gradients.

    Sources are counted from `first` on, where the rows that send these messages begin; `by_source` says which messages
    each of them sends.
    """

    def __init__(
        self, messages: Messages, first: int, by_source: Pointers, sources: Space, targets: Space, cutter: Cutter
    ) -> None:
        target, back, self.hubs = messages.target, messages.back, messages.hubs
        self.by_source = by_source
        forward = cutter.space(targets.owner[target], targets.block[target])
        self.by_target = cutter.pointers(cutter.field(targets, messages.ptr.diff()))
        first_block = _blocks_before(sources, first)
        self.source = cutter.field(forward, messages.source + first, sources, first_block)
        self.edge = cutter.field(forward, messages.edge)  # edges keep their ids: values per edge stay where they are
        sender = groups(back.ptr, back.neighbor.numel()) + first
        backward = cutter.space(sources.owner[sender], sources.block[sender])
        self.target = cutter.field(backward, back.neighbor, targets)
        self.position = cutter.field(backward, back.edge, forward)

    def cut(self, cut: Cut | PaddedCut) -> Messages:
        """The messages of the graphs that were cut out."""
        return Messages(
            cut[self.source],
            cut.pointers(self.by_target),
            cut[self.edge],
            Adjacency(cut.pointers(self.by_source), cut[self.target], cut[self.position]),
            self.hubs,  # those of all graphs: reading it off the batch would make the CPU wait for the GPU
        )


def _blocks_before(space: Space, position: int) -> int:
    """The number of blocks before a position at which a block begins."""
    return int(space.block[position - 1]) + 1 if position else 0
