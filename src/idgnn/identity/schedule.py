r"""K rounds of message passing as index tensors: which rows send to which rows, in which round.

A layer needs to know nothing of identity graphs or ego networks. It is given a :class:`Round`: messages from source
rows to target rows, those of plain and those of colored sources separate, because they have different weights (Eq. 3).
:mod:`idgnn.identity.schedule_builder` makes the schedule of some queries, with the rows that matter alone, and
:mod:`idgnn.identity.row_graph` its plain twin, with all rows in all rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, IndexedGraph, distinct, groups, pointers

HUB = 2048  # messages: a target or a source that has more is worth splitting on a GPU
_ALL = "all messages"  # in the cache of a graph

TakesBlocks = Literal["all", "plain"]


@dataclass(frozen=True)
class Messages:
    """Messages grouped by target: target `t` receives those of `source[ptr[t]:ptr[t + 1]]`."""

    source: Tensor  # [messages]
    ptr: Tensor  # [targets + 1]; messages behind the last pointer are padding
    # The edge of the original graph that each travels on; edge E + i is the self-loop of node i. Empty for layers that
    # take blocks, which have no use for it.
    edge: Tensor  # [messages]
    back: Adjacency  # the same by source, for gradients: ptr, target, position in `source`
    hubs: bool  # whether a target or a source may have more than HUB of them

    @property
    def target(self) -> Tensor:
        """The target of each message: `[messages]`."""
        return groups(self.ptr, self.source.numel())


@dataclass(frozen=True)
class Exchange:
    r"""A round of a layer that sums, in which a row takes the sum of its node's plain row and exchanges what changed:

    .. math:: \sum_s w_{su}\, m(s|v) = \sum_s w_{su}\, m(s)
        + \sum_{s\ \text{with a row of its own}} w_{su}\, (m(s|v) - m(s))

    so that it costs the messages that the color changes, not the degree of its node. The first sum, over the plain
    messages, is that of the *bases* of the round, the targets of :attr:`Round.plain`.
    """

    num_plain: int  # sources [:num_plain] are plain rows; those behind have states of their own, colored ones last
    twin: Tensor  # [own sources] the plain source row of the same node
    base: Tensor  # [targets] the base of the same node
    changes: Messages  # from own sources that are not colored, counted from `num_plain` on
    received: Tensor  # [targets] the number of messages into the node
    node: Tensor  # [bases]
    arrived: Tensor  # [arrived] the targets that had a state of their own before
    base_row: Tensor | None  # [bases] the plain source row of each; None if plain states are known

    def split(self, x: Tensor, round_: Round) -> tuple[Tensor, Tensor, Tensor]:
        """The states of plain sources, of sources with states of their own, and of colored ones."""
        plain, own, colored = x.split(
            [self.num_plain, round_.split - self.num_plain, round_.num_sources - round_.split]
        )
        return plain, own, colored


@dataclass(frozen=True)
class Blocks:
    """Aggregates of plain messages that several targets receive in place of the messages: :mod:`idgnn.identity.blocks`.

    In :attr:`Round.plain` they are the sources `split`, `split + 1`, ...
    """

    number: Tensor  # [blocks] among those of the graph
    messages: Messages | None  # from plain sources to blocks; None if the aggregates are known
    previous: Tensor  # [blocks] the plain source row of the node; empty if that is not needed
    known: tuple[Tensor, ...] = ()  # the aggregates, each [blocks, ...], as the layer has computed them


@dataclass(frozen=True)
class Round:
    """One round of message passing. Sources `[:split]` send plain messages, sources `[split:]` colored ones.

    Where there are two colors, sources `[second:]` have the second one; `None`: there is one.
    """

    num_sources: int
    num_targets: int
    split: int
    plain: Messages
    colored: Messages  # its sources are counted from `split` on
    previous: Tensor  # [targets] the source row that holds the target's own state before this round
    exchange: Exchange | None = None  # then `plain` leads to bases
    blocks: Blocks | None = None
    second: int | None = None
    real: Tensor | None = None  # [targets] whether each is no padding (identity/padded_cut.py); None: all are real
    in_order: bool = False  # whether the targets are the sources, in the same order

    @property
    def has_color(self) -> bool:
        """Whether any colored message is sent."""
        return self.colored.source.numel() > 0

    @property
    def received(self) -> Tensor:
        """The number of messages that each target receives, or blocks of them `[targets]`."""
        if self.exchange is not None:
            return self.exchange.received
        return self.plain.ptr.diff() + self.colored.ptr.diff()

    def own_states(self, x: Tensor) -> Tensor:
        """What each target has before the round `[targets, channels]`, from the states of the sources."""
        return x if self.in_order else x.index_select(0, self.previous)

    def split_by_color(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The states of plain and of colored sources."""
        # One split: the gradient of two slices would be two tensors of the full size, mostly zeros.
        plain, colored = x.split([self.split, self.num_sources - self.split])
        return plain, colored

    @property
    def num_of_color(self) -> list[int]:
        """How many of the colored sources have the first color, and the second, if there are two."""
        if self.second is None:
            return [self.num_sources - self.split]
        return [self.second - self.split, self.num_sources - self.second]


@dataclass(frozen=True)
class Schedule:
    """All rounds of a network: it starts from one row for each of `node` and ends with the answers.

    Where the plain states of all nodes are known already (`embed`), rounds compute rows of their own alone, and read
    the plain rows among their sources, `plain[k]`, from what is known: they are the first sources of round k.
    """

    node: Tensor  # [rows] the nodes whose features the rows of the first round start with
    rounds: tuple[Round, ...]
    answer: Tensor  # [queries] the target of the last round that answers each query
    plain: tuple[Tensor, ...] = ()  # [plain sources] nodes, for each round
    # Whether `node` is 0, 1, 2, ..., and whether `answer` is, all targets of the last round. Then nothing is selected,
    # forward and backward.
    starts_in_order: bool = False
    answers_in_order: bool = False

    def start(self, x: Tensor) -> Tensor:
        """The rows that the first round begins with, from those of all nodes."""
        in_order = self.starts_in_order and x.size(0) == self.node.size(0)
        return x if in_order else x.index_select(0, self.node)


def used_edges(schedule: Schedule, graph: IndexedGraph) -> tuple[Tensor | None, Schedule]:
    """The edges that messages travel on, and the schedule with these numbered 0, 1, 2, ...; `None`: all edges."""
    rounds = schedule.rounds
    lists = [m for r in rounds for m in (r.plain, r.colored, *([r.exchange.changes] if r.exchange else []))]
    if any(messages is graph.cache.get(_ALL) for messages in lists):
        return None, schedule
    edges, place = distinct(torch.cat([messages.edge for messages in lists]), graph.num_ids)
    parts = iter(place.split([messages.edge.numel() for messages in lists]))
    numbered = []
    for round_ in rounds:
        plain, colored = (replace(each, edge=next(parts)) for each in (round_.plain, round_.colored))
        exchange = round_.exchange
        if exchange is not None:
            exchange = replace(exchange, changes=replace(exchange.changes, edge=next(parts)))
        numbered.append(replace(round_, plain=plain, colored=colored, exchange=exchange))
    return edges, replace(schedule, rounds=tuple(numbered))


def all_messages(graph: IndexedGraph) -> Messages:
    """The plain messages of a whole graph: worked out once for it."""
    if _ALL not in graph.cache:
        into, size = graph.into, graph.num_nodes
        target = groups(into.ptr, into.neighbor.numel())
        graph.cache[_ALL] = group_messages(into.neighbor, target, into.edge, size, size)
    return graph.cache[_ALL]


def ordered(colored: Tensor, *rows: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The different rows among these, colored ones last, color by color, and the place of each among them."""
    ids, sizes = torch.cat(rows), [each.numel() for each in rows]
    found, place = distinct(ids, colored.numel(), last=colored)
    return found, list(place.split(sizes))


def color_sizes(colored: Tensor, sources: Tensor) -> tuple[int, int | None]:
    """Where the colored ones begin among ordered sources, and the second color if there are two."""
    mine, size = colored.index_select(0, sources), sources.numel()
    if colored.dtype == torch.bool:
        return size - int(mine.sum()), None
    return size - int((mine > 0).sum()), size - int((mine == 2).sum())


def split_round(
    messages: tuple[Tensor, Tensor, Tensor],
    previous: Tensor,
    split: int,
    num_sources: int,
    gradients: bool = True,
    second: int | None = None,
) -> Round:
    """Separates the messages (source, target, edge), sorted by target, of plain and of colored sources.

    Without edges, if layers have no use for them.
    """
    source, target, edge = messages
    num_targets, is_plain = previous.numel(), source < split
    plain, colored = is_plain.nonzero().flatten(), (~is_plain).nonzero().flatten()

    def take(chosen: Tensor, first: int, size: int) -> Messages:
        taken = source.index_select(0, chosen), target.index_select(0, chosen)
        edges = edge.index_select(0, chosen) if edge.numel() else edge
        return group_messages(taken[0] - first, taken[1], edges, size, num_targets, gradients)

    sent = take(plain, 0, split), take(colored, split, num_sources - split)
    return Round(num_sources, num_targets, split, *sent, previous, second=second)


def group_messages(
    source: Tensor, target: Tensor, edge: Tensor, num_sources: int, num_targets: int, gradients: bool = True
) -> Messages:
    """Messages sorted by target; for gradients they are sorted by source as well."""
    ptr = pointers(target, num_targets)
    if gradients:
        by, order = torch.sort(source.to(torch.int32) if num_sources < 2**31 else source, stable=True)
        back = Adjacency(pointers(by, num_sources), target.index_select(0, order), order)
        return Messages(source, ptr, edge, back, has_hubs(source.numel(), ptr, back.ptr))
    none = source[:0]
    return Messages(source, ptr, edge, Adjacency(none, none, none), has_hubs(source.numel(), ptr))


def no_messages(like: Tensor, num_sources: int, num_targets: int) -> Messages:
    """Empty lists, on the device of `like`."""
    none = like[:0]
    back = Adjacency(like.new_zeros(num_sources + 1), none, none)
    return Messages(none, like.new_zeros(num_targets + 1), none, back, False)


def is_in_order(index: Tensor, size: int) -> bool:
    """Whether an index is 0, 1, 2, ..., `size` - 1."""
    return index.numel() == size and torch.equal(index, torch.arange(size, device=index.device))


def has_hubs(num_messages: int, *ptrs: Tensor) -> bool:
    """Whether, of so many messages, more than `HUB` are in one group of these pointers."""
    return num_messages > HUB and any(bool((ptr.diff() > HUB).any()) for ptr in ptrs)
