r"""The schedule of some queries: which rows are computed, from which rows, in which round.

:func:`make_schedule` keeps in every round only the rows that matter: at depth `k` a row :math:`(u|v)` has an own
state only once the color has arrived, :math:`d(v, u) \le k`, and only while the answer can depend on it,
:math:`d(u, r) \le K - k`. A forward pass, a batch of roots, a batch cut out of a dataset and a chunk of `embed` all run
such a schedule. :func:`idgnn.identity.row_graph.whole` is its plain twin.

Rows go by numbers: `u` is the plain row of node u, and `num_nodes + i` the i-th row of the cone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, IndexedGraph, distinct, pointers, spread
from idgnn.identity.blocks import block_lists, runs_of
from idgnn.identity.cone import ChangedEdges, Cone, changed_edges, empty_cone
from idgnn.identity.queries import Queries
from idgnn.identity.schedule import (
    Blocks,
    Exchange,
    Messages,
    Round,
    Schedule,
    TakesBlocks,
    all_messages,
    color_sizes,
    group_messages,
    has_hubs,
    is_in_order,
    no_messages,
    ordered,
    split_round,
)
from idgnn.identity.two_colors import all_rows

# A row costs its in-degree in messages in the direct form. The exchange form costs the messages that the color changes,
# and besides a few passes over all rows, about as much as so many messages to each.
EXCHANGE_ROW_COST = 8


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
    one = queries.second is None
    if one and not queries.own and bool((queries.color < 0).any()):  # colors that are not in the graph reach no node
        inside = queries.take((queries.color >= 0).nonzero().flatten())
    else:
        inside = queries
    cone = all_rows(graph, num_layers, inside) if cone is None else cone
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
        self.colored = torch.cat([torch.zeros_like(every, dtype=cone.colored.dtype), cone.colored])
        self.before = None  # of rows under two colors, the row under the nearer one
        if cone.before is not None:
            own = torch.where(cone.before < 0, cone.node, cone.before + self.num_nodes)
            self.before = torch.cat([every, own])
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
        last = is_in_order(answer, rounds[0].num_targets)
        return Schedule(start, tuple(reversed(rounds)), answer, known, answers_in_order=last)

    def _previous(self, targets: Tensor, depth: int) -> Tensor:
        """The row that holds each target's own state: before the color arrives, that is the plain row.

        Before the farther one of two colors arrives, it is the row under the nearer one, or the plain one.
        """
        arrived, before = self.arrival.index_select(0, targets) <= depth, self.node.index_select(0, targets)
        if self.before is not None:
            nearer = self.before.index_select(0, targets)
            before = torch.where(self.arrival.index_select(0, nearer) <= depth, nearer, before)
        return torch.where(arrived, targets, before)

    def _direct(self, targets: Tensor, depth: int) -> tuple[Round, Tensor]:
        """Every row receives all of its messages, or blocks of them."""
        into, nodes = self.graph.into, self.node.index_select(0, targets)
        changed, target, place = self._changes(targets, depth)
        # Where a changed message is among all messages into its target.
        edge = self.changed.into.edge.index_select(0, place)
        begin = into.ptr.index_select(0, nodes.index_select(0, target))
        offset = self.graph.position_of_edge.index_select(0, edge) - begin
        previous = self._previous(targets, depth)
        may = None if self.blocks is None else torch.ones_like(targets, dtype=torch.bool)
        if self.blocks == "plain":  # before the color arrives, a row's own state is the plain one
            may = previous < self.num_nodes
        runs = runs_of(self.graph, nodes, target, offset, may, self.plain_known)
        run, position = spread(runs.first, runs.count)
        sender = into.neighbor if self.blocks is None else block_lists(self.graph).sender
        source = sender.index_select(0, position)
        source[runs.changed] = changed + self.num_nodes
        if self.blocks is not None:
            target = run if runs.target is None else runs.target.index_select(0, run)
            return self._of_blocks(source, target, previous, runs.target is not None)
        sources, (source, previous) = self._ordered(source, previous)
        edge = into.edge.index_select(0, position)
        split, second = self._sizes(sources)
        size, messages = sources.numel(), (source, run, edge)
        return split_round(messages, previous, split, size, self.gradients, second), sources

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
        (split, second), num_sources = self._sizes(sources), sources.numel()
        if count:
            source = torch.where(source < split, source, source + count)
            source[at] = split + block
        round_ = split_round((source, target, none), previous, split + count, num_sources + count, self.gradients)
        found = Blocks(blocks, None, none)
        if not self.plain_known:
            found = Blocks(blocks, group_messages(places[0], owner, none, split, count, self.gradients), places[1])
        taken = found if count else None
        return replace(round_, num_sources=num_sources, split=split, blocks=taken, second=second), sources

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
            num_plain = int((sources < num_nodes).sum())
            if plain is None:
                plain = group_messages(
                    source_place, number, into.edge.index_select(0, position), num_plain, bases.numel(), self.gradients
                )
            twin = torch.searchsorted(sources[:num_plain], self.node.index_select(0, sources[num_plain:]))
        plain = plain or no_messages(nodes, num_plain, 0)
        (split, second), num_sources = self._sizes(sources), sources.numel()
        rows, count = sources[num_plain:] - num_nodes, targets.numel()
        changes, colored = self._split_changes(source - num_plain, owner, position_in, rows, split - num_plain, count)
        arrived = (previous >= num_plain).nonzero().flatten()
        exchange = Exchange(num_plain, twin, base, changes, into.degree_of(nodes), bases, arrived, base_row)
        return Round(num_sources, count, split, plain, colored, previous, exchange, second=second), sources

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
            if self.before is not None:  # which row sends over an edge depends on the round
                sent = source.index_select(0, kept) - first, target.index_select(0, kept), edge.index_select(0, kept)
                found.append(group_messages(*sent, last - first, num_targets, self.gradients))
                continue
            ptr = pointers(target.index_select(0, kept), num_targets)
            back = self._sent(position.index_select(0, kept), target.index_select(0, kept), rows[first:last])
            ptrs = (ptr, back.ptr) if self.gradients else (ptr,)
            hubs = has_hubs(kept.numel(), *ptrs)
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
        if self.before is not None:
            source = self._previous(source + self.num_nodes, depth) - self.num_nodes
            there = (source >= 0).nonzero().flatten()
        else:
            there = (self.cone.arrival.index_select(0, source) <= depth).nonzero().flatten()
        source, owner, position = (each.index_select(0, there) for each in (source, owner, position))
        return source, owner + num_plain, position

    def _ordered(self, *rows: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The different rows among these, plain ones first and colored ones last, and the place of each among them."""
        return ordered(self.colored, *rows)

    def _sizes(self, sources: Tensor) -> tuple[int, int | None]:
        """How many of the sources send plain messages, and where those of the second color begin, if there is one."""
        return color_sizes(self.colored, sources)
