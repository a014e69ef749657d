r"""Which rows are computed, from which rows, in which round: K rounds of message passing as index tensors.

A layer needs to know nothing of identity graphs or ego networks. It is given a :class:`Round`: messages from source
rows to target rows, those of plain and those of colored sources separate, because they have different weights (Eq. 3).
:func:`make_schedule` keeps in every round only the rows that matter: at depth `k` a row :math:`(u|v)` has an own
state only once the color has arrived, :math:`d(v, u) \le k`, and only while the answer can depend on it,
:math:`d(u, r) \le K - k`. A forward pass, a batch of roots, a batch cut out of a dataset and a chunk of `embed` all run
such a schedule. :func:`whole` is its plain twin: all rows in all rounds.

Rows go by numbers: `u` is the plain row of node u, and `num_nodes + i` the i-th row of the cone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from idgnn.identity.adjacency import (
    Adjacency,
    IndexedGraph,
    distinct,
    groups,
    incoming,
    pointers,
    spread,
)
from idgnn.identity.blocks import block_lists, runs_of
from idgnn.identity.cone import ChangedEdges, Cone, changed_edges, cones, empty_cone, join
from idgnn.identity.identity_graph import IdentityGraph
from idgnn.identity.queries import Queries

HUB = 2048  # messages: a target or a source that has more is worth splitting on a GPU
# A row costs its in-degree in messages in the direct form. The exchange form costs the messages that the color changes,
# and besides a few passes over all rows, about as much as so many messages to each.
EXCHANGE_ROW_COST = 8
_ALL = "all messages"  # in the cache of a graph

TakesBlocks = Literal["all", "plain"]


@dataclass(frozen=True)
class Messages:
    """Messages grouped by target: target `t` receives those of `source[ptr[t]:ptr[t + 1]]`."""

    source: Tensor  # [messages]
    ptr: Tensor  # [targets + 1]
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
    """One round of message passing. Sources `[:split]` send plain messages, sources `[split:]` colored ones."""

    num_sources: int
    num_targets: int
    split: int
    plain: Messages
    colored: Messages  # its sources are counted from `split` on
    previous: Tensor  # [targets] the source row that holds the target's own state before this round
    exchange: Exchange | None = None  # then `plain` leads to bases
    blocks: Blocks | None = None

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

    def split_by_color(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The states of plain and of colored sources."""
        # One split: the gradient of two slices would be two tensors of the full size, mostly zeros.
        plain, colored = x.split([self.split, self.num_sources - self.split])
        return plain, colored


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


def make_schedule(
    graph: IndexedGraph,
    queries: Queries,
    num_layers: int,
    *,
    exchange: bool | None,
    cone: Cone | None = None,
    changed: ChangedEdges | None = None,
    plain_known: bool = False,
    gradients: bool = True,
    blocks: TakesBlocks | None = None,
    check: Callable[[int, int], None] | None = None,
) -> Schedule:
    """The rows that each round needs to answer the queries, found backwards from those that answer.

    Args:
        graph: The graph, with self-loops if the layers send messages along them.
        queries: What is read under which color; without a color that reaches it, a node is read plain.
        num_layers: The number of rounds.
        exchange: Whether rows exchange messages (:class:`Exchange`), which is for layers that sum; `None`: where it
            costs less.
        cone: The rows of the queries, if they are known.
        changed: The changed edges between them (:func:`idgnn.identity.cone.changed_edges`), if they are known.
        plain_known: Whether the plain states of all nodes are known: see :class:`Schedule`. Then every query must have
            a row in the cone.
        gradients: Whether a backward pass will follow; without one, messages are not sorted by source.
        blocks: Which rows may receive the aggregates of blocks of messages (:mod:`idgnn.identity.blocks`): all of them,
            those whose own state is plain, or none.
        check: Told the rows and messages of the largest round before they are allocated.
    """
    if not queries.own and bool((queries.color < 0).any()):  # colors that are not in the graph reach no node
        inside = queries.take((queries.color >= 0).nonzero().flatten())
    else:
        inside = queries
    cone = join(cones(graph, num_layers, inside)) if cone is None else cone
    changed = changed_edges(graph, cone, gradients) if changed is None else changed
    builder = _Builder(graph, cone, changed, exchange, plain_known, gradients, blocks)
    if check is not None:
        last = torch.arange(graph.num_nodes, graph.num_nodes + cone.key.numel(), device=cone.key.device)
        direct = 0 if builder._exchanges(last) else int(graph.into.degree_of(cone.node).sum())
        check(queries.node.numel() + cone.key.numel(), direct or changed.into.neighbor.numel())
    place, there = cone.find(queries)
    return builder.backwards(torch.where(there, place + graph.num_nodes, queries.node))


def plain_schedule(graph: IndexedGraph, nodes: Tensor, num_layers: int) -> Schedule:
    """The plain states of some nodes."""
    rows = empty_cone(graph, num_layers), ChangedEdges.none(graph.into.edge)
    return _Builder(graph, *rows, exchange=False, plain_known=False, gradients=True, blocks=None).backwards(nodes)


class _Builder:
    """Finds the rounds of a schedule, last round first."""

    def __init__(
        self,
        graph: IndexedGraph,
        cone: Cone,
        changed: ChangedEdges,
        exchange: bool | None,
        plain_known: bool,
        gradients: bool,
        blocks: TakesBlocks | None,
    ) -> None:
        self.graph, self.cone, self.changed = graph, cone, changed
        self.plain_known, self.gradients, self.blocks = plain_known, gradients, blocks
        self.num_nodes = graph.num_nodes
        every = torch.arange(self.num_nodes, device=cone.key.device)
        self.node = torch.cat([every, cone.node])
        self.arrival = torch.cat([torch.zeros_like(every), cone.arrival])
        self.colored = torch.cat([torch.zeros_like(every, dtype=torch.bool), cone.colored])
        self.exchange = exchange

    def _exchanges(self, targets: Tensor) -> bool:
        """Whether rows exchange messages in the round that ends with `targets`: as asked, or where that costs less."""
        if self.exchange is not None:
            return self.exchange
        own = targets[targets >= self.num_nodes]
        rows = own - self.num_nodes
        direct = int(self.graph.into.degree_of(self.node.index_select(0, own)).sum())
        changed = int(self.changed.into.degree_of(rows).sum())
        return direct > changed + EXCHANGE_ROW_COST * rows.numel()

    def backwards(self, query_row: Tensor) -> Schedule:
        """The schedule that ends with the rows `query_row` `[queries]`."""
        targets, answer = distinct(query_row, self.node.numel())
        rounds, plain = [], []
        for depth in range(self.cone.num_layers - 1, -1, -1):
            round_, sources = (self._exchanged if self._exchanges(targets) else self._direct)(targets, depth)
            rounds.append(round_)
            first_own = int((sources < self.num_nodes).sum())
            plain.append(sources[:first_own])
            targets = sources[first_own:] if self.plain_known else sources
        start = self.node.index_select(0, targets)
        known = tuple(reversed(plain)) if self.plain_known else ()
        return Schedule(start, tuple(reversed(rounds)), answer, known)

    def _previous(self, targets: Tensor, depth: int) -> Tensor:
        """The row that holds each target's own state: before the color arrives, that is the plain row."""
        arrived = self.arrival.index_select(0, targets) <= depth
        return torch.where(arrived, targets, self.node.index_select(0, targets))

    def _direct(self, targets: Tensor, depth: int) -> tuple[Round, Tensor]:
        """Every row receives all of its messages, or blocks of them."""
        into, nodes = self.graph.into, self.node.index_select(0, targets)
        changed, target, place = self._changes(targets, depth)
        # Where a changed message is among all messages into its target.
        edge = self.changed.into.edge.index_select(0, place)
        begin = into.ptr.index_select(0, nodes.index_select(0, target))
        offset = self.graph.position_of_edge.index_select(0, edge) - begin
        may = None if self.blocks is None else torch.ones_like(targets, dtype=torch.bool)
        if self.blocks == "plain":  # before the color arrives, a row's own state is the plain one
            may = (self.arrival.index_select(0, targets) > depth) | (targets < self.num_nodes)
        runs = runs_of(self.graph, nodes, target, offset, may, self.plain_known)
        run, position = spread(runs.first, runs.count)
        sender = into.neighbor if self.blocks is None else block_lists(self.graph).sender
        source = sender.index_select(0, position)
        source[runs.changed] = changed + self.num_nodes
        previous = self._previous(targets, depth)
        if self.blocks is not None:
            target = run if runs.target is None else runs.target.index_select(0, run)
            return self._of_blocks(source, target, previous, runs.target is not None)
        sources, (source, previous) = self._ordered(source, previous)
        edge = into.edge.index_select(0, position)
        return split_round((source, run, edge), previous, *self._sizes(sources), self.gradients), sources

    def _of_blocks(self, source: Tensor, target: Tensor, previous: Tensor, some: bool) -> tuple[Round, Tensor]:
        """A direct round of messages from rows and, where `source` is `-1 - b`, from block b, if there are some."""
        lists, into = block_lists(self.graph), self.graph.into
        at = (source < 0).nonzero().flatten() if some else source[:0]
        blocks, block = distinct(-1 - source.index_select(0, at), lists.node.numel())
        count, none = blocks.numel(), blocks[:0]
        source[at] = previous.index_select(0, target.index_select(0, at))  # any source of the round
        owner, senders = none, []
        if not self.plain_known:
            owner, position = lists.expand(blocks)
            # Of the node itself, the plain state is needed only if all rows that take blocks have it.
            own = lists.node.index_select(0, blocks) if self.blocks == "plain" else none
            senders = [into.neighbor.index_select(0, position), own]
        sources, (source, previous, *places) = self._ordered(source, previous, *senders)
        split, num_sources = self._sizes(sources)
        if count:
            source = torch.where(source < split, source, source + count)
            source[at] = split + block
        round_ = split_round((source, target, none), previous, split + count, num_sources + count, self.gradients)
        found = Blocks(blocks, None, none)
        if not self.plain_known:
            found = Blocks(blocks, group_messages(places[0], owner, none, split, count, self.gradients), places[1])
        return replace(round_, num_sources=num_sources, split=split, blocks=found if count else None), sources

    def _exchanged(self, targets: Tensor, depth: int) -> tuple[Round, Tensor]:
        """Every row receives the sum of its node's plain row, and the messages that differ."""
        into, num_nodes = self.graph.into, self.num_nodes
        changed, owner, position_in = self._changes(targets, depth)
        previous = self._previous(targets, depth)
        nodes = self.node.index_select(0, targets)
        own = torch.cat([changed + num_nodes, previous])
        twins = self.node.index_select(0, own)  # of rows that are plain, the rows themselves
        plain = base_row = None
        if self.plain_known:  # the sums over plain messages are known for every node, and so are plain messages
            base, bases = nodes, nodes[:0]
            sources, (source, previous) = self._ordered(changed + num_nodes, previous)
            split, num_sources = self._sizes(sources)
            num_plain = int((sources < num_nodes).sum())
            twin = self.node.index_select(0, sources[num_plain:])
        else:
            bases, base = distinct(nodes, num_nodes)
            if 2 * bases.numel() > num_nodes:  # then all of them: their messages are at hand
                plain, bases, base = all_messages(self.graph), torch.arange(num_nodes, device=nodes.device), nodes
                senders = bases
            else:
                number, position = into.expand(bases)
                senders = into.neighbor.index_select(0, position)
            sources, places = self._ordered(senders, changed + num_nodes, previous, twins, bases)
            source_place, source, previous, _, base_row = places
            split, num_sources = self._sizes(sources)
            num_plain = int((sources < num_nodes).sum())
            if plain is None:
                plain = group_messages(
                    source_place, number, into.edge.index_select(0, position), num_plain, bases.numel(), self.gradients
                )
            twin = torch.searchsorted(sources[:num_plain], self.node.index_select(0, sources[num_plain:]))
        plain = plain or _no_messages(nodes, num_plain, 0)
        rows, count = sources[num_plain:] - num_nodes, targets.numel()
        changes, colored = self._split_changes(source - num_plain, owner, position_in, rows, split - num_plain, count)
        arrived = (previous >= num_plain).nonzero().flatten()
        exchange = Exchange(num_plain, twin, base, changes, into.degree_of(nodes), bases, arrived, base_row)
        return Round(num_sources, count, split, plain, colored, previous, exchange), sources

    def _split_changes(
        self, source: Tensor, target: Tensor, position: Tensor, rows: Tensor, split: int, num_targets: int
    ) -> tuple[Messages, Messages]:
        """The changed messages of sources that are not colored and of colored ones, from `split` on.

        They come sorted by target, as positions among the changed edges `into` rows; `rows` are the rows that send.
        """
        is_colored = source >= split
        edge = self.changed.into.edge.index_select(0, position)
        chosen = (~is_colored).nonzero().flatten(), is_colored.nonzero().flatten()
        found = []
        for kept, first, last in ((chosen[0], 0, split), (chosen[1], split, rows.numel())):
            ptr = pointers(target.index_select(0, kept), num_targets)
            back = self._sent(position.index_select(0, kept), target.index_select(0, kept), rows[first:last])
            ptrs = (ptr, back.ptr) if self.gradients else (ptr,)
            hubs = _has_hubs(kept.numel(), *ptrs)
            found.append(Messages(source.index_select(0, kept) - first, ptr, edge.index_select(0, kept), back, hubs))
        return found[0], found[1]

    def _sent(self, position: Tensor, target: Tensor, rows: Tensor) -> Adjacency:
        """Changed messages, given by their positions, sorted by the row that sends them: nothing is sorted for it."""
        if not self.gradients:
            return Adjacency(rows[:0], rows[:0], rows[:0])
        number = position.new_full((self.changed.into.edge.numel(),), -1)
        number[position] = torch.arange(position.numel(), device=position.device)
        owner, place = self.changed.out.expand(rows)
        message = number.index_select(0, self.changed.out.edge.index_select(0, place))
        there = (message >= 0).nonzero().flatten()
        message = message.index_select(0, there)
        ptr = pointers(owner.index_select(0, there), rows.numel())
        return Adjacency(ptr, target.index_select(0, message), message)

    def _changes(self, targets: Tensor, depth: int) -> tuple[Tensor, Tensor, Tensor]:
        """The changed messages into target rows: the cone row that sends each, its target, and its position."""
        num_plain = int((targets < self.num_nodes).sum())
        rows = targets[num_plain:] - self.num_nodes  # plain rows come first, and receive from plain rows alone
        owner, position = self.changed.into.expand(rows)
        source = self.changed.into.neighbor.index_select(0, position)
        there = (self.cone.arrival.index_select(0, source) <= depth).nonzero().flatten()
        source, owner, position = (each.index_select(0, there) for each in (source, owner, position))
        return source, owner + num_plain, position

    def _ordered(self, *rows: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The different rows among these, plain ones first and colored ones last, and the place of each among them."""
        return _ordered(self.colored, *rows)

    def _sizes(self, sources: Tensor) -> tuple[int, int]:
        """How many of the sources send plain messages, and how many there are."""
        return sources.numel() - int(self.colored.index_select(0, sources).sum()), sources.numel()


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


@dataclass(frozen=True)
class RowGraph:
    """A graph of copies of nodes and edges, some of them colored, and the rows that answer the queries.

    The nodes themselves, an identity graph or ego networks: what a network of any layers is run on, all rows each time.
    """

    edge_index: Tensor  # [2, edges]
    edge: Tensor  # [edges] the edge of the original graph that each is a copy of
    node: Tensor  # [rows] the node of the original graph that each is a copy of
    colored: Tensor  # [rows]
    query_row: Tensor  # [queries]

    @staticmethod
    def of(graph: IdentityGraph) -> RowGraph:
        """The rows of an identity graph."""
        return RowGraph(graph.edge_index, graph.edge, graph.node, graph.colored, graph.query_row)

    @staticmethod
    def of_nodes(edge_index: Tensor, num_nodes: int, colored: Tensor | None = None) -> RowGraph:
        """The nodes themselves, each read where it is; none of them colored, or those that are named."""
        node = torch.arange(num_nodes, device=edge_index.device)
        edge = torch.arange(edge_index.size(1), device=edge_index.device)
        if colored is None:
            colored = torch.zeros_like(node, dtype=torch.bool)
        return RowGraph(edge_index, edge, node, colored, node)

    def into(self, first_loop: int | None) -> Adjacency:
        """The in-neighbors of every row; with `first_loop`, the number of edges of the original graph, each row has
        exactly one self-loop, its last in-edge, which is edge `first_loop + node`."""
        edge_index, edge = self.edge_index, self.edge
        if first_loop is not None:
            other = edge_index[0] != edge_index[1]
            every = torch.arange(self.node.numel(), device=edge.device)
            edge_index = torch.cat([edge_index[:, other], every.expand(2, -1)], dim=1)
            edge = torch.cat([edge[other], first_loop + self.node])
        into = incoming(edge_index, self.node.numel())
        return Adjacency(into.ptr, into.neighbor, edge[into.edge])


def whole(rows: RowGraph, num_layers: int, first_loop: int | None = None) -> Schedule:
    """Every row in every round: the plain twin of :func:`make_schedule`."""
    into = rows.into(first_loop)
    every = torch.arange(rows.node.numel(), device=rows.node.device)
    order, (place,) = _ordered(rows.colored, every)
    owner, position = into.expand(order)
    split = order.numel() - int(rows.colored.sum())
    messages = place[into.neighbor[position]], owner, into.edge[position]
    round_ = split_round(messages, every, split, order.numel())
    return Schedule(rows.node[order], (round_,) * num_layers, place[rows.query_row])


def trimmed(graph: IdentityGraph, num_layers: int, first_loop: int | None = None) -> Schedule:
    """The rows of an identity graph that was built before that each round needs, by its own edges."""
    into = RowGraph.of(graph).into(first_loop)
    plain_of = graph.plain_row[graph.node]
    every = torch.arange(graph.arrival.numel(), device=graph.arrival.device)
    targets, answer = distinct(graph.query_row, every.numel())
    rounds = []
    for depth in range(num_layers - 1, -1, -1):
        # Before the color arrives, a row's state is the plain one and is read there.
        state = torch.where(graph.arrival <= depth, every, plain_of)
        owner, position = into.expand(targets)
        source, previous = state[into.neighbor[position]], state[targets]
        sources, (source, previous) = _ordered(graph.colored, source, previous)
        split = sources.numel() - int(graph.colored[sources].sum())
        rounds.append(split_round((source, owner, into.edge[position]), previous, split, sources.numel()))
        targets = sources
    return Schedule(graph.node[targets], tuple(reversed(rounds)), answer)


def _ordered(colored: Tensor, *rows: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The different rows among these, colored ones last, and the place of each among them."""
    ids, sizes = torch.cat(rows), [each.numel() for each in rows]
    found, place = distinct(ids, colored.numel(), last=colored)
    return found, list(place.split(sizes))


def split_round(
    messages: tuple[Tensor, Tensor, Tensor], previous: Tensor, split: int, num_sources: int, gradients: bool = True
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

    return Round(
        num_sources, num_targets, split, take(plain, 0, split), take(colored, split, num_sources - split), previous
    )


def group_messages(
    source: Tensor, target: Tensor, edge: Tensor, num_sources: int, num_targets: int, gradients: bool = True
) -> Messages:
    """Messages sorted by target; for gradients they are sorted by source as well."""
    ptr = pointers(target, num_targets)
    if gradients:
        by, order = torch.sort(source.to(torch.int32) if num_sources < 2**31 else source, stable=True)
        back = Adjacency(pointers(by, num_sources), target.index_select(0, order), order)
        return Messages(source, ptr, edge, back, _has_hubs(source.numel(), ptr, back.ptr))
    none = source[:0]
    return Messages(source, ptr, edge, Adjacency(none, none, none), _has_hubs(source.numel(), ptr))


def _no_messages(like: Tensor, num_sources: int, num_targets: int) -> Messages:
    none = like[:0]
    back = Adjacency(like.new_zeros(num_sources + 1), none, none)
    return Messages(none, like.new_zeros(num_targets + 1), none, back, False)


def _has_hubs(num_messages: int, *ptrs: Tensor) -> bool:
    """Whether, of so many messages, more than `HUB` are in one group of these pointers."""
    return num_messages > HUB and any(bool((ptr.diff() > HUB).any()) for ptr in ptrs)
