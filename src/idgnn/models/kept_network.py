"""A network of our own layers on one large graph, whose plain states are computed once and kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph, distinct
from idgnn.identity.blocks import block_lists
from idgnn.identity.cone import Cone, cut, find_cone, row_bounds
from idgnn.identity.cost import TooLargeError, readable
from idgnn.identity.queries import Queries
from idgnn.identity.schedule import Blocks, Schedule, TakesBlocks, group_messages, split_round
from idgnn.identity.schedule_builder import make_schedule
from idgnn.identity.second_nodes import Reading
from idgnn.identity.two_colors import all_rows
from idgnn.layers.aggregation import gather_sum
from idgnn.layers.identity_conv import IdentityConv
from idgnn.layers.operator import LinearSumOperator, Operator, PlainRound, SumOperator
from idgnn.models.chunk_shares import WHOLE, Share
from idgnn.models.embedding_memory import MORE, Budget, largest_beyond
from idgnn.models.inputs import Inputs

if TYPE_CHECKING:
    from idgnn.models.idgnn import IDGNN


class KeptNetwork:
    """A network of our own layers on one graph: the plain states of all nodes, then the rows of some queries at a time.

    Args:
        model: The network, in evaluation mode.
        inputs: The graph.
        x: Features of the nodes `[num_nodes, in_channels]`, with the counts of ID-GNN-Fast.
        read: The nodes that will be queried. Of all others, only the states that theirs depend on are computed.
        budget: Bytes for what is worked on.
    """

    def __init__(self, model: IDGNN, inputs: Inputs, x: Tensor, read: Tensor, budget: Budget) -> None:
        self.model, self.budget, self.edge_attr = model, budget, inputs.edge_attr
        self.operators: list[Operator] = [cast(IdentityConv, conv).operator for conv in model.convs]
        first = self.operators[0]
        self.graph = IndexedGraph(inputs.edge_index, inputs.num_nodes, first.self_loops)
        self.weight = first.edge_values(inputs.edge_index, inputs.num_nodes, inputs.edge_weight, x.dtype)
        full = model.identity == "full"
        self.keeps_sums = full and first.sums
        self.takes_blocks: TakesBlocks | None = first.takes_blocks if full and x.device.type == "cpu" else None
        self.rounds: list[PlainRound] = []
        self.block_values: list[tuple[Tensor, ...]] = []  # of all blocks, for each round
        self.states = self._plain_states(x, read)  # after 0 ... num_layers rounds, each [num_nodes, width]

    def chunks(self, queries: Queries, share: Share = WHOLE, start: int = 0) -> Iterator[tuple[tuple[int, int], float]]:
        """Runs of queries, in their order, that fit into the room, and the bytes of each; refuses one that does not
        fit alone. Of several processes, and of work that was begun, those that are left to this one."""
        bounds = row_bounds(self.graph, self.model.num_layers, queries)
        cost = self.budget.cost(*bounds, self.keeps_sums)
        self._check(queries, cost)
        total = torch.cat([cost.new_zeros(1), cost.cumsum(0)]).tolist()
        for first, last in share.left(cut(cost, min(self.budget.chunk, share.limit(cost))), start):
            yield (first, last), total[last] - total[first]

    def colored(self, queries: Queries) -> tuple[Tensor, int]:
        """Embeddings of nodes under colors, and how many of them no color reaches: those are the plain ones."""
        answer, unreached = self._states(find_cone(self.graph, self.model.num_layers, queries), queries)
        return self.model.finish(answer), unreached

    def two_colors(self, queries: Reading) -> tuple[Tensor, int]:
        """Embeddings of what is pooled from states under two colors, and how many of these no color reaches."""
        answer, unreached = self._states(all_rows(self.graph, self.model.num_layers, queries.queries), queries.queries)
        size = queries.owner.numel()
        every, none = torch.arange(size, device=queries.owner.device), queries.owner[:0]
        pool = group_messages(every, queries.owner, none, size, queries.num_answers, gradients=False)
        return self.model.finish(self.model.pooled(answer, pool)), unreached

    def _states(self, cone: Cone, queries: Queries) -> tuple[Tensor, int]:
        """The states that answer queries after the last round, and how many of them are plain."""
        _, there = cone.find(queries)
        answer = self.states[-1].index_select(0, queries.node)
        reached = there.nonzero().flatten()
        if reached.numel():
            answer[reached] = self._run(self._schedule(cone, queries.take(reached)))
        return answer, there.numel() - reached.numel()

    def _schedule(self, cone: Cone, queries: Queries) -> Schedule:
        return make_schedule(
            self.graph,
            queries,
            self.model.num_layers,
            exchange=self.keeps_sums,
            cone=cone,
            plain_known=True,
            gradients=False,
            blocks=self.takes_blocks,
        )

    def _run(self, schedule: Schedule) -> Tensor:
        """The states of the rows that answer."""
        h = self.states[0].index_select(0, schedule.node)
        for layer, (operator, round_) in enumerate(zip(self.operators, schedule.rounds, strict=True)):
            x = self._sources(layer, schedule.plain[layer], h, exchanged=round_.exchange is not None)
            if round_.exchange is not None:
                plain = self.rounds[layer]
                _, *own = round_.exchange.split(x, round_)
                out = cast(SumOperator, operator).exchanged(plain, x, own, round_, self.weight)
            else:
                if round_.blocks is not None:
                    known = tuple(each.index_select(0, round_.blocks.number) for each in self.block_values[layer])
                    round_ = replace(round_, blocks=replace(round_.blocks, known=known))
                out = operator(x, round_, self.weight, self.edge_attr)
            h = self.model.after(layer, out, round_.own_states(x) if self.model.residual else None)
        return h.index_select(0, schedule.answer)

    def _sources(self, layer: int, plain: Tensor, own: Tensor, exchanged: bool) -> Tensor:
        """The states of all sources of a round: those of plain rows, and those of rows with states of their own."""
        if not plain.numel():
            return own
        if exchanged and isinstance(self.operators[layer], LinearSumOperator) and not self.model.residual:
            # Plain states are read where they are kept, and own plain states are part of sums: places are enough.
            x = own.new_empty(plain.numel() + own.size(0), own.size(1))
            x[plain.numel() :] = own
            return x
        return torch.cat([self.states[layer].index_select(0, plain), own])

    def _plain_states(self, x: Tensor, read: Tensor) -> list[Tensor]:
        into, needed = self.graph.into, [torch.unique(read)]
        for _ in self.operators:
            last = needed[-1]
            if last.numel() < x.size(0):
                _, position = into.expand(last)
                last = torch.unique(torch.cat([last, into.neighbor.index_select(0, position)]))
            needed.append(last)
        needed.reverse()
        # Memory that is never written to is never taken.
        states = [x.new_empty(x.size(0), self.model.settings["hidden_channels"]) for _ in needed]
        for some in needed[0].split(max(int(self.budget.chunk / self.budget.row), 1)):
            states[0][some] = self.model.start(x.index_select(0, some))
        for layer, nodes in enumerate(needed[1:]):
            sent = self._sent(layer, states[layer], needed[layer]) if self.keeps_sums else None
            if self.takes_blocks:
                self.block_values.append(self._aggregate_blocks(layer, states[layer], nodes))
            for first, last in cut(into.degree_of(nodes) + 1, self.budget.chunk / self.budget.message):
                some = nodes[first:last]
                out = self._plain_part(layer, states[layer], sent, some)
                own = states[layer].index_select(0, some) if self.model.residual else None
                states[layer + 1][some] = self.model.after(layer, out, own)
        return states

    def _sent(self, layer: int, states: Tensor, nodes: Tensor) -> Tensor:
        """The plain messages of all nodes in a round of a layer that sums; their sums are kept."""
        operator, sent = cast(SumOperator, self.operators[layer]), None
        for some in nodes.split(max(int(self.budget.chunk / self.budget.row), 1)):
            values = operator.message(states.index_select(0, some), False)
            if sent is None:
                sent = values.new_empty(states.size(0), values.size(1))
            sent[some] = values
        assert sent is not None
        linear = isinstance(operator, LinearSumOperator)
        with_own = torch.empty_like(sent) if linear and operator.own_weight else None
        self.rounds.append(PlainRound(states, None if linear else sent, torch.empty_like(sent), with_own))
        return sent

    def _aggregate_blocks(self, layer: int, states: Tensor, nodes: Tensor) -> tuple[Tensor, ...]:
        """The aggregates of all blocks of messages into these nodes, as rows of their number."""
        lists, into, values = block_lists(self.graph), self.graph.into, list[Tensor]()
        wanted = torch.zeros(states.size(0), dtype=torch.bool, device=nodes.device).index_fill(0, nodes, True)
        every = wanted.index_select(0, lists.node).nonzero().flatten()
        for first, last in cut(lists.size.index_select(0, every), self.budget.chunk / self.budget.message):
            some = every[first:last]
            owner, position = lists.expand(some)
            ends = [into.neighbor.index_select(0, position), lists.node.index_select(0, some)]
            sources, place = distinct(torch.cat(ends), states.size(0))
            source, previous = place.split([owner.numel(), some.numel()])
            messages = group_messages(source, owner, some[:0], sources.numel(), some.numel(), gradients=False)
            blocks = Blocks(some, messages, previous)
            found = self.operators[layer].block_values(states.index_select(0, sources), blocks)
            values = values or [each.new_empty(lists.node.numel(), *each.shape[1:]) for each in found]
            for kept, each in zip(values, found, strict=True):
                kept[some] = each
        return tuple(values)

    def _plain_part(self, layer: int, states: Tensor, sent: Tensor | None, nodes: Tensor) -> Tensor:
        """A round on plain states for some nodes."""
        operator, into = self.operators[layer], self.graph.into
        owner, position = into.expand(nodes)
        source, edge = into.neighbor.index_select(0, position), into.edge.index_select(0, position)
        if sent is None:
            sources, place = distinct(torch.cat([source, nodes]), states.size(0))
            source, previous = place.split([source.numel(), nodes.numel()])
            size = sources.numel()
            round_ = split_round((source, owner, edge), previous, size, size, gradients=False)
            return operator(states.index_select(0, sources), round_, self.weight, self.edge_attr)
        size = states.size(0)
        round_ = split_round((source, owner, edge), nodes, size, size, gradients=False)
        total = gather_sum(sent, round_.plain, edge_weight=self.weight)
        kept = self.rounds[layer]
        kept.total[nodes] = total
        if kept.total_with_own is None:
            return cast(SumOperator, operator).combine(total, states, round_)
        operator = cast(LinearSumOperator, operator)
        total = torch.add(total, sent.index_select(0, nodes), alpha=operator.own_weight)
        kept.total_with_own[nodes] = total
        return operator.finish(total)

    def _check(self, queries: Queries, bound: Tensor) -> None:
        """Refuses queries that do not fit one by one, and names the largest. What each costs is at most its bound."""
        room = self.budget.room
        found = largest_beyond(room, bound, lambda query: self._cost_of(self._cone(queries, query)))
        if found is None:
            return
        query, cost = found
        node, rows = int(queries.node[query]), self._cone(queries, query).key.numel()
        raise TooLargeError(
            f"the embedding of node {node} alone has {rows:,} states of its own and takes about {readable(cost)}, but "
            f"of the memory that was given {readable(room)} are left for that. Give "
            f"{readable(MORE * (cost - room))} more (memory=..., --memory), or, if there are many graphs, take fewer "
            "of them at a time. ID-GNN-Fast and networks with fewer layers need less."
        )

    def _cone(self, queries: Queries, query: int) -> Cone:
        return find_cone(self.graph, self.model.num_layers, queries.slice(query, query + 1))

    def _cost_of(self, cone: Cone) -> float:
        """Bytes that the rows of a cone take."""
        edges = self.graph.into.degree_of(cone.node).sum()
        between = torch.stack([each.degree_of(cone.node).sum() for each in self.graph.ascending]).sum()
        return float(self.budget.cost(torch.tensor(cone.key.numel()), between, edges, self.keeps_sums))
