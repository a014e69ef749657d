r"""The rounds of a network over several node types, as index tensors: the schedule of all types as one graph, by type.

Messages of an edge type have weights of their own, and so have colored ones. Where messages are linear, they may be
summed first and mapped after:

.. math:: \sum_e \mathbf{W}_e \sum_{s \in N_e(u)} w_{su} \mathbf{h}_s
    = \sum_e \sum_{s \in N_e(u)} w_{su} \mathbf{W}_e \mathbf{h}_s

The kinds of messages are the edge types, plain and colored. For each kind the cheaper way is taken: its messages are
summed into *slots*, one for each target that they arrive at, and the slots are mapped; or the states of its sources are
mapped, once each, and summed after. Between the tables of a database that is the side of the smaller table.

Rows are ordered by type, so that what belongs to a type is a slice: where a round exchanges messages the plain rows
come first, as they are in the schedule, and the others by type behind them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph, distinct, inverse
from idgnn.identity.hetero.types import TypedGraph
from idgnn.identity.schedule import Messages, Round, Schedule, all_messages, group_messages

_ALL_SLOTS = "slots of all messages"  # in the cache of a graph


@dataclass(frozen=True)
class Slots:
    """Messages that are summed by target and kind and mapped, or mapped by source and kind, and summed by target.

    What is mapped are the *entries*: the slots, and behind them the sources of the kinds that are mapped first.
    """

    into: Messages  # from rows to slots
    taken: Tensor  # [sources] rows, for each kind that is mapped first
    kinds: tuple[tuple[int, int], ...]  # (kind, number of its entries), in the order of the entries
    out: Messages  # from entries to targets; the edge of a message from a slot is the number of edges
    num_messages: int


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
class ColoredTargets:
    """The targets of a round that are colored, all of one node type."""

    node_type: int
    place: Tensor  # [colored targets] among the targets


@dataclass(frozen=True)
class TypedRound:
    """One round: all messages, or an exchange."""

    segments: tuple[tuple[int, int], ...]  # (node type, number of targets), in the order of the targets
    previous: Tensor  # [targets] the source row that holds the target's own state before this round
    messages: Slots | None
    exchange: TypedExchange | None
    colored: ColoredTargets | None

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


def typed_schedule(schedule: Schedule, graph: IndexedGraph, typed: TypedGraph, gradients: bool) -> TypedSchedule:
    """A schedule of all types as one graph, by type. It may have been made without gradients: messages are sorted here.

    Linear in the messages, and a few sorts of them.
    """
    known = bool(schedule.plain)
    node = schedule.node  # of the rows that a round before computed
    order, segments = by_type(node, _num_plain(schedule, 0), typed)
    first_node, first_segments, rounds = node.index_select(0, order), segments, []
    for depth, round_ in enumerate(schedule.rounds):
        plain = schedule.plain[depth] if known else node[:0]
        place = inverse(order)
        # Sources are the known plain rows and behind them what was computed before.
        moved = torch.cat([torch.arange(plain.numel(), device=place.device), place + plain.numel()])
        after = torch.cat([plain, node]).index_select(0, round_.previous)  # the node of each target
        last = depth + 1 == len(schedule.rounds)
        target_order, target_segments = by_type(after, 0 if last else _num_plain(schedule, depth + 1), typed)
        colored = _colored_targets(round_, after, target_order, typed)
        rounds.append(_round(round_, moved, target_order, target_segments, colored, graph, typed, known, gradients))
        node, order = after, target_order
    return TypedSchedule(
        first_node, first_segments, tuple(rounds), inverse(order).index_select(0, schedule.answer), schedule.plain
    )


def _num_plain(schedule: Schedule, depth: int) -> int:
    """How many of the rows that a round starts from have to come first as they are: plain rows of an exchange."""
    exchange = schedule.rounds[depth].exchange
    return 0 if exchange is None or schedule.plain else exchange.num_plain


def by_type(node: Tensor, num_plain: int, typed: TypedGraph) -> tuple[Tensor, tuple[tuple[int, int], ...]]:
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
    colored_targets: ColoredTargets | None,
    graph: IndexedGraph,
    typed: TypedGraph,
    known: bool,
    gradients: bool,
) -> TypedRound:
    """One round with its sources moved, and its targets in another order."""
    place, num_targets = inverse(target_order), target_order.numel()
    previous = moved.index_select(0, round_.previous).index_select(0, target_order)

    def ends(messages: Messages, first: int) -> tuple[Tensor, Tensor, Tensor]:
        return moved.index_select(0, messages.source + first), place.index_select(0, messages.target), messages.edge

    colored = ends(round_.colored, round_.split)
    exchange = round_.exchange
    if exchange is None:
        slots = _slots(typed, [ends(round_.plain, 0)], [colored], round_.num_sources, num_targets, gradients)
        return TypedRound(segments, previous, slots, None, colored_targets)
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
        segments,
        previous,
        None,
        TypedExchange(num_plain, twin, keep, colored_place, bases, base, changes),
        colored_targets,
    )


def _colored_targets(round_: Round, node: Tensor, order: Tensor, typed: TypedGraph) -> ColoredTargets | None:
    """The targets whose own state before the round is that of a colored row; `node` `[targets]` is that of each."""
    place = (round_.previous.index_select(0, order) >= round_.split).nonzero().flatten()
    if not place.numel():
        return None
    return ColoredTargets(int(typed.node_type[node[order[place[0]]]]), place)


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
        graph.cache[_ALL_SLOTS] = _slots(typed, [ends], [], typed.total, typed.total, gradients=True)
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
    source, target, edge = (torch.cat(part) for part in zip(*plain, *colored, strict=True))
    num_types, num_colored = len(typed.num_edges), sum(edges.numel() for _, _, edges in colored)
    kind = typed.edge_type.index_select(0, edge)
    kind[kind.numel() - num_colored :] += num_types
    # A kind has a slot for each of its targets and a sender for each of its sources: the fewer ones are mapped.
    slot, slot_of, slot_count = _distinct(kind, target, num_targets, 2 * num_types)
    sender, sender_of, sender_count = _distinct(kind, source, num_sources, 2 * num_types)
    mapped_first = sender_count < slot_count  # [kinds]
    summed = ~mapped_first
    # Entries: the slots of the kinds that are summed first, then the senders of the others.
    slot_kept = summed.index_select(0, slot // max(num_targets, 1)).nonzero().flatten()
    sender_kept = mapped_first.index_select(0, sender // max(num_sources, 1)).nonzero().flatten()
    slot_place = _places(slot_kept, slot.numel())
    sender_place = _places(sender_kept, sender.numel()) + slot_kept.numel()
    of_summed = summed.index_select(0, kind)
    first, others = of_summed.nonzero().flatten(), (~of_summed).nonzero().flatten()
    # From rows to slots: the messages of the kinds that are summed first.
    place = slot_place.index_select(0, slot_of.index_select(0, first))
    place, order = torch.sort(place.to(torch.int32), stable=True)
    first = first.index_select(0, order)
    into = group_messages(
        source.index_select(0, first),
        place.long(),
        edge.index_select(0, first),
        num_sources,
        slot_kept.numel(),
        gradients,
    )
    # From entries to targets: one message of each slot, without a weight, and the messages of the other kinds.
    slot_target = slot.index_select(0, slot_kept) % max(num_targets, 1)
    entry = torch.cat(
        [
            torch.arange(slot_kept.numel(), device=slot.device),
            sender_place.index_select(0, sender_of.index_select(0, others)),
        ]
    )
    ends, order = torch.sort(torch.cat([slot_target, target.index_select(0, others)]).to(torch.int32), stable=True)
    edges = torch.cat([slot_target.new_full(slot_target.shape, _num_edges(typed)), edge.index_select(0, others)])
    num_entries = slot_kept.numel() + sender_kept.numel()
    out = group_messages(
        entry.index_select(0, order), ends, edges.index_select(0, order), num_entries, num_targets, gradients
    )
    taken = sender.index_select(0, sender_kept) % max(num_sources, 1)
    counts = torch.cat([slot_count * summed, sender_count * mapped_first]).tolist()
    kinds = tuple((number % (2 * num_types), count) for number, count in enumerate(counts) if count)
    return Slots(into, taken, kinds, out, source.numel())


def _num_edges(typed: TypedGraph) -> int:
    """The number of edges of all types, which is also the place behind the last weight of a message."""
    return typed.edge_index.size(1)


def _distinct(kind: Tensor, row: Tensor, num_rows: int, num_kinds: int) -> tuple[Tensor, Tensor, Tensor]:
    """The different pairs of a kind and a row, sorted, as `kind * num_rows + row`; the pair of each of the given ones;
    and the number of pairs of each kind."""
    pair, place = distinct(kind * num_rows + row, max(num_kinds * num_rows, 1))
    return pair, place, torch.bincount(pair // max(num_rows, 1), minlength=num_kinds)


def _places(kept: Tensor, size: int) -> Tensor:
    """Where those that are kept are among each other `[size]`; 0 for the others."""
    place = kept.new_zeros(size)
    place[kept] = torch.arange(kept.numel(), device=kept.device)
    return place
