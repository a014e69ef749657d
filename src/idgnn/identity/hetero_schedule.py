r"""The rounds of a network over several node types, as index tensors: the schedule of all types as one graph, by type.

Messages of an edge type have weights of their own, and so have colored ones. Where messages are linear, they may be
summed first and mapped after:

.. math:: \sum_e \mathbf{W}_e \sum_{s \in N_e(u)} w_{su} \mathbf{h}_s

So a round sums into *slots*, one for each target and kind of message that arrives there, maps the slots of each kind by
its weights, and sums the slots of each target. The kinds are the edge types, plain and colored.

Rows are ordered by type, so that what belongs to a type is a slice: where a round exchanges messages the plain rows
come first, as they are in the schedule, and the others by type behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, IndexedGraph, pointers
from idgnn.identity.hetero_types import TypedGraph
from idgnn.identity.schedule import Messages, Round, Schedule, all_messages, group_messages

_ALL_SLOTS = "slots of all messages"  # in the cache of a graph


@dataclass(frozen=True)
class Slots:
    """Messages that are summed by target and kind, mapped, and summed by target."""

    into: Messages  # from rows to slots
    kinds: tuple[tuple[int, int], ...]  # (kind, number of its slots), in the order of the slots
    target: Tensor  # [slots] of each slot
    out: Messages  # from slots to targets
    num_edge_types: int

    @property
    def num_messages(self) -> int:
        """The number of messages."""
        return self.into.source.numel()

    @cached_property
    def by_edge_type(self) -> tuple[Tensor, Tensor, Tensor]:
        """Pairs of a target and an edge type that arrives there, plain or colored: the pair of each slot `[slots]`, and
        the edge type and the target of each pair `[pairs]`."""
        num_targets = max(self.out.ptr.numel() - 1, 1)
        numbers, counts = zip(*self.kinds, strict=True) if self.kinds else ((), ())
        numbers = self.target.new_tensor(numbers) % self.num_edge_types
        kind = torch.repeat_interleave(numbers, self.target.new_tensor(counts), output_size=self.target.numel())
        pair, place = torch.unique(kind * num_targets + self.target, return_inverse=True)
        return place, pair // num_targets, pair % num_targets


@dataclass(frozen=True)
class TypedExchange:
    """A round in which rows take the sum of their node's plain row and exchange the messages that differ.

    See :class:`idgnn.identity.schedule.Exchange`. What is sent are the changes of the states that are not plain, of
    colored ones minus the plain state, and behind them the states of colored rows.
    """

    num_plain: int  # sources [:num_plain] are plain
    twin: Tensor  # [own sources] the plain source row of the same node; its node if plain states are known
    keep: Tensor  # [own sources] whether the own state is part of the change: not of colored rows
    colored: Tensor  # [colored] their positions among own sources
    bases: Slots | None  # plain messages to bases; None if plain states are known
    base: Tensor  # [targets] the base of the same node; the node if plain states are known
    changes: Slots


@dataclass(frozen=True)
class TypedRound:
    """One round: all messages, or an exchange."""

    segments: tuple[tuple[int, int], ...]  # (node type, number of targets), in the order of the targets
    previous: Tensor  # [targets] the source row that holds the target's own state before this round
    messages: Slots | None
    exchange: TypedExchange | None

    @property
    def num_messages(self) -> int:
        """The number of messages of this round."""
        if self.exchange is None:
            return 0 if self.messages is None else self.messages.num_messages
        bases = self.exchange.bases
        return self.exchange.changes.num_messages + (0 if bases is None else bases.num_messages)


@dataclass(frozen=True)
class TypedSchedule:
    """All rounds: they start from one row for each of `node`, ordered by type, and end with the answers."""

    node: Tensor  # [rows] of all types as one graph
    segments: tuple[tuple[int, int], ...]  # (node type, number of rows)
    rounds: tuple[TypedRound, ...]
    answer: Tensor  # [queries]
    plain: tuple[Tensor, ...] = ()  # [plain sources] nodes, for each round, where plain states are known

    @property
    def num_rows(self) -> int:
        """The rows that are computed in all rounds together."""
        return sum(count for round_ in self.rounds for _, count in round_.segments)

    @property
    def num_messages(self) -> int:
        """The messages of all rounds together."""
        return sum(round_.num_messages for round_ in self.rounds)


def typed_schedule(schedule: Schedule, graph: IndexedGraph, typed: TypedGraph, gradients: bool = True) -> TypedSchedule:
    """A schedule of all types as one graph, by type. It may have been made without gradients: messages are sorted here.

    Linear in the messages, and two sorts of them.
    """
    known = bool(schedule.plain)
    node = schedule.node  # of the rows that a round before computed
    order, segments = _by_type(node, _num_plain(schedule, 0), typed)
    first_node, first_segments, rounds = node.index_select(0, order), segments, []
    for depth, round_ in enumerate(schedule.rounds):
        plain = schedule.plain[depth] if known else node[:0]
        place = _inverse(order)
        # Sources are the known plain rows and behind them what was computed before.
        moved = torch.cat([torch.arange(plain.numel(), device=place.device), place + plain.numel()])
        after = torch.cat([plain, node]).index_select(0, round_.previous)  # the node of each target
        last = depth + 1 == len(schedule.rounds)
        target_order, target_segments = _by_type(after, 0 if last else _num_plain(schedule, depth + 1), typed)
        rounds.append(_round(round_, moved, target_order, target_segments, graph, typed, known, gradients))
        node, order = after, target_order
    return TypedSchedule(
        first_node, first_segments, tuple(rounds), _inverse(order).index_select(0, schedule.answer), schedule.plain
    )


def _num_plain(schedule: Schedule, depth: int) -> int:
    """How many of the rows that a round starts from have to come first as they are: plain rows of an exchange."""
    exchange = schedule.rounds[depth].exchange
    return 0 if exchange is None or schedule.plain else exchange.num_plain


def _by_type(node: Tensor, num_plain: int, typed: TypedGraph) -> tuple[Tensor, tuple[tuple[int, int], ...]]:
    """The order of rows, plain ones first, each part by type; and the types and sizes of its slices."""
    kind = typed.node_type.index_select(0, node)
    own = torch.argsort(kind[num_plain:], stable=True) + num_plain
    order = torch.cat([torch.arange(num_plain, device=own.device), own])
    counts = [torch.bincount(part, minlength=len(typed.num_nodes)) for part in kind.tensor_split([num_plain])]
    pairs = [(number, count) for part in counts for number, count in enumerate(part.tolist()) if count]
    return order, tuple(pairs)


def _round(
    round_: Round,
    moved: Tensor,
    target_order: Tensor,
    segments: tuple[tuple[int, int], ...],
    graph: IndexedGraph,
    typed: TypedGraph,
    known: bool,
    gradients: bool,
) -> TypedRound:
    """One round with its sources moved, and its targets in another order."""
    place, num_targets = _inverse(target_order), target_order.numel()
    previous = moved.index_select(0, round_.previous).index_select(0, target_order)

    def ends(messages: Messages, first: int) -> tuple[Tensor, Tensor, Tensor]:
        return moved.index_select(0, messages.source + first), place.index_select(0, messages.target), messages.edge

    colored = ends(round_.colored, round_.split)
    exchange = round_.exchange
    if exchange is None:
        slots = _slots(typed, [ends(round_.plain, 0)], [colored], round_.num_sources, num_targets, gradients)
        return TypedRound(segments, previous, slots, None)
    num_plain, num_own = exchange.num_plain, exchange.twin.numel()
    own_place = moved[num_plain:] - num_plain  # [own sources] where each of them went
    twin = torch.empty_like(exchange.twin).index_copy(0, own_place, exchange.twin)
    colored_place = own_place[round_.split - num_plain :]
    keep = torch.ones(num_own, dtype=torch.bool, device=twin.device).index_fill(0, colored_place, False)
    number = torch.zeros_like(twin).index_copy(
        0, colored_place, torch.arange(colored_place.numel(), device=twin.device) + num_own
    )
    source, target, edge = ends(exchange.changes, num_plain)
    taken = colored[0] - num_plain, *colored[1:]  # the plain message of the colored node is taken back
    given = number.index_select(0, taken[0]), *taken[1:]
    changes = _slots(
        typed,
        [(source - num_plain, target, edge), taken],
        [given],
        num_own + colored_place.numel(),
        num_targets,
        gradients,
    )
    bases = None if known else _base_slots(round_.plain, num_plain, graph, typed, gradients)
    base = exchange.base.index_select(0, target_order)
    return TypedRound(
        segments, previous, None, TypedExchange(num_plain, twin, keep, colored_place, bases, base, changes)
    )


def _base_slots(plain: Messages, num_plain: int, graph: IndexedGraph, typed: TypedGraph, gradients: bool) -> Slots:
    """The plain messages to the bases of a round; those of the whole graph are worked out once for it."""
    if plain is graph.cache.get("all messages"):
        return all_slots(graph, typed)
    ends = plain.source, plain.target, plain.edge
    return _slots(typed, [ends], [], num_plain, plain.ptr.numel() - 1, gradients)


def all_slots(graph: IndexedGraph, typed: TypedGraph) -> Slots:
    """The plain messages of a whole graph: worked out once for it."""
    if _ALL_SLOTS not in graph.cache:
        plain = all_messages(graph)
        ends = plain.source, plain.target, plain.edge
        graph.cache[_ALL_SLOTS] = _slots(typed, [ends], [], typed.total, typed.total, True)
    return graph.cache[_ALL_SLOTS]


def _slots(
    typed: TypedGraph,
    plain: list[tuple[Tensor, Tensor, Tensor]],
    colored: list[tuple[Tensor, Tensor, Tensor]],
    num_sources: int,
    num_targets: int,
    gradients: bool,
) -> Slots:
    """Messages (source, target, edge), of kind e if they are plain and travel on edge type e, else E + e."""
    shift = [0] * len(plain) + [len(typed.num_edges)] * len(colored)
    lists = [*plain, *colored]
    source, target, edge = (torch.cat(part) for part in zip(*lists, strict=True))
    kind = torch.cat(
        [typed.edge_type.index_select(0, edges) + more for (_, _, edges), more in zip(lists, shift, strict=True)]
    )
    key = kind * num_targets + target
    key, order = torch.sort(key.to(torch.int32) if num_targets * 2 * len(typed.num_edges) < 2**31 else key, stable=True)
    slot, place = torch.unique_consecutive(key, return_inverse=True)
    slot = slot.long()
    into = group_messages(
        source.index_select(0, order), place, edge.index_select(0, order), num_sources, slot.numel(), gradients
    )
    of_kind = slot // max(num_targets, 1)
    kinds = torch.bincount(of_kind, minlength=2 * len(typed.num_edges)).tolist()
    ends = slot - of_kind * num_targets
    by_target = torch.argsort(ends, stable=True)
    every = torch.arange(slot.numel() + 1, device=slot.device)
    back = Adjacency(every, ends, _inverse(by_target))
    out = Messages(by_target, pointers(ends, num_targets), by_target, back, into.hubs)
    return Slots(
        into, tuple((number, count) for number, count in enumerate(kinds) if count), ends, out, len(typed.num_edges)
    )


def _inverse(order: Tensor) -> Tensor:
    """Where each element went: `_inverse(order)[order] = 0, 1, 2, ...`."""
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel(), device=order.device)
    return place
