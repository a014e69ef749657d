"""The schedule of many graphs, out of which the schedule of any of them is cut."""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, groups
from idgnn.identity.cutting import Cut, Cutter, Space, blocks_of
from idgnn.identity.rounds import Messages, Round, Schedule


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
        sources = cutter.space(owner, blocks_of(owner, distinct[0].split))
        self.node = cutter.field(sources, schedule.node, nodes)
        self.rounds: list[StackedRound] = []
        for i, round_ in enumerate(distinct):
            if len(distinct) < len(schedule.rounds):
                targets = sources  # a network on all rows has one round, many times
            else:
                owner = sources.owner[round_.previous]
                split = distinct[i + 1].split if i + 1 < len(distinct) else None
                targets = cutter.space(owner, blocks_of(owner, split))
            self.rounds.append(StackedRound(round_, sources, targets, cutter))
            sources = targets
        self.times = len(schedule.rounds) // len(distinct)
        self.queries = cutter.space(sources.owner[schedule.answer])
        self.answer = cutter.field(self.queries, schedule.answer, sources)

    def cut(self, cut: Cut) -> Schedule:
        """The schedule of the graphs that were cut out."""
        rounds = tuple(round_.cut(cut) for round_ in self.rounds)
        return Schedule(cut[self.node], rounds * self.times, cut[self.answer])


class StackedRound:
    """One round, from the space of its source rows to that of its target rows."""

    def __init__(self, round_: Round, sources: Space, targets: Space, cutter: Cutter) -> None:
        self.sources, self.targets = sources, targets
        self.plain_blocks = int(sources.block[round_.split - 1]) + 1 if round_.split else 0
        self.previous = cutter.field(targets, round_.previous, sources)
        sent = torch.cat([round_.plain.back.degree, round_.colored.back.degree])  # by each source
        self.sent = cutter.field(sources, sent)
        self.plain = StackedMessages(round_.plain, 0, sources, targets, cutter)
        self.colored = StackedMessages(round_.colored, round_.split, sources, targets, cutter)

    def cut(self, cut: Cut) -> Round:
        """The round of the graphs that were cut out."""
        split = sum(cut.sizes[self.sources.number][: self.plain_blocks])
        sent = cut[self.sent]
        return Round(
            cut.size(self.sources),
            cut.size(self.targets),
            split,
            self.plain.cut(cut, 0, sent[:split]),
            self.colored.cut(cut, split, sent[split:]),
            cut[self.previous],
        )


class StackedMessages:
    """Messages in two orders, each a space: by target, and by source for gradients.

    Sources are counted from `first` on, where the plain or the colored rows begin.
    """

    def __init__(self, messages: Messages, first: int, sources: Space, targets: Space, cutter: Cutter) -> None:
        target, back, self.hubs = messages.target, messages.back, messages.hubs
        forward = cutter.space(targets.owner[target], targets.block[target])
        self.received = cutter.field(targets, messages.ptr.diff())
        self.source = cutter.field(forward, messages.source + first, sources)
        self.edge = cutter.field(forward, messages.edge)  # edges keep their ids: values per edge stay where they are
        sender = groups(back.ptr, back.neighbor.numel()) + first
        backward = cutter.space(sources.owner[sender], sources.block[sender])
        self.target = cutter.field(backward, back.neighbor, targets)
        self.position = cutter.field(backward, back.edge, forward)

    def cut(self, cut: Cut, first: int, sent: Tensor) -> Messages:
        """The messages of the graphs that were cut out: sources begin at row `first` and have `sent` so many each."""
        source = cut[self.source]
        return Messages(
            source - first if first else source,
            _pointers(cut[self.received]),
            cut[self.edge],
            Adjacency(_pointers(sent), cut[self.target], cut[self.position]),
            self.hubs,  # those of all graphs: to look at the batch, a GPU would have to be waited for
        )


def _pointers(count: Tensor) -> Tensor:
    pointers = count.new_zeros(count.numel() + 1)
    torch.cumsum(count, 0, out=pointers[1:])
    return pointers
