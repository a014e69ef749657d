"""The schedule of many graphs, out of which the schedule of any of them is cut."""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency
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
        self.schedule, self.nodes = schedule, nodes
        # A network on all rows has one round, many times.
        distinct = list({id(round_): round_ for round_ in schedule.rounds}.values())
        owner = nodes.owner[schedule.node]
        self.first = sources = cutter.add(owner, blocks_of(owner, distinct[0].split))
        self.rounds: dict[int, StackedRound] = {}
        for i, round_ in enumerate(distinct):
            following = distinct[i + 1] if i + 1 < len(distinct) else None
            owner = sources.owner[round_.previous]
            if following is None and len(distinct) < len(schedule.rounds):
                targets = sources
            else:
                targets = cutter.add(owner, blocks_of(owner, None if following is None else following.split))
            self.rounds[id(round_)] = StackedRound(round_, sources, targets, cutter)
            sources = targets
        self.last = sources
        self.queries = cutter.add(sources.owner[schedule.answer])

    def cut(self, cut: Cut) -> Schedule:
        """The schedule of the graphs that were cut out."""
        made = {key: round_.cut(cut) for key, round_ in self.rounds.items()}
        return Schedule(
            cut.send(self.schedule.node, self.first, self.nodes),
            tuple(made[id(round_)] for round_ in self.schedule.rounds),
            cut.send(self.schedule.answer, self.queries, self.last),
        )


class StackedRound:
    """One round, from the space of its source rows to that of its target rows."""

    def __init__(self, round_: Round, sources: Space, targets: Space, cutter: Cutter) -> None:
        self.round, self.sources, self.targets = round_, sources, targets
        self.plain_blocks = int(sources.block[round_.split - 1]) + 1 if round_.split else 0
        self.plain = StackedMessages(round_.plain, 0, sources, targets, cutter)
        self.coloured = StackedMessages(round_.coloured, round_.split, sources, targets, cutter)

    def cut(self, cut: Cut) -> Round:
        """The round of the graphs that were cut out."""
        split = sum(cut.sizes[self.sources.number][: self.plain_blocks])
        num_sources = cut.size(self.sources)
        return Round(
            num_sources,
            cut.size(self.targets),
            split,
            self.plain.cut(cut, 0, split),
            self.coloured.cut(cut, split, num_sources),
            cut.send(self.round.previous, self.targets, self.sources),
        )


class StackedMessages:
    """Messages in two orders, each a space: by target, and by source for gradients.

    Sources are counted from `first` on, where the plain or the coloured rows begin.
    """

    def __init__(self, messages: Messages, first: int, sources: Space, targets: Space, cutter: Cutter) -> None:
        self.sources, self.targets, self.edge = sources, targets, messages.edge
        target = messages.target
        self.forward = cutter.add(targets.owner[target], targets.block[target])
        self.source = messages.source + first
        self.received = messages.ptr.diff()
        back = messages.back
        sender = torch.repeat_interleave(back.degree, output_size=back.neighbour.numel()) + first
        self.backward = cutter.add(sources.owner[sender], sources.block[sender])
        self.target, self.position = back.neighbour, back.edge
        self.sent = torch.bincount(self.source, minlength=sources.owner.numel())

    def cut(self, cut: Cut, first: int, last: int) -> Messages:
        """The messages of the graphs that were cut out, whose sources are rows `first` to `last`."""
        source = cut.send(self.source, self.forward, self.sources)
        return Messages(
            source - first if first else source,
            _pointers(cut.take(self.received, self.targets)),
            cut.take(self.edge, self.forward),  # edges keep their ids: values per edge stay where they are
            Adjacency(
                _pointers(cut.take(self.sent, self.sources)[first:last]),
                cut.send(self.target, self.backward, self.targets),
                cut.send(self.position, self.backward, self.forward),
            ),
        )


def _pointers(count: Tensor) -> Tensor:
    return torch.cat([count.new_zeros(1), count.cumsum(0)])
