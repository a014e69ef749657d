"""Exact embeddings of a graph of any size, some queries at a time, within a stated amount of memory.

The plain states of all nodes are computed once and kept, round by round; some queries at a time then run the same
schedule through the same layers as in training (:mod:`idgnn.identity.schedule`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn.identity.adjacency import IndexedGraph, distinct, pointers
from idgnn.identity.blocks import BLOCK, block_lists
from idgnn.identity.checks import check_graph
from idgnn.identity.cone import Cone, cut, find_cone, row_bounds, warn_unreached
from idgnn.identity.cost import TooLargeError, free_memory, readable
from idgnn.identity.cycle_features import computed_scale, cycle_features
from idgnn.identity.queries import Queries, as_queries, as_tensor
from idgnn.identity.schedule import Blocks, Schedule, TakesBlocks, group_messages, split_round
from idgnn.identity.schedule_builder import make_schedule
from idgnn.identity.second_nodes import Reading
from idgnn.identity.two_colors import all_rows, count_rows, two_color_bounds
from idgnn.layers.aggregation import gather_sum
from idgnn.layers.identity_conv import IdentityConv
from idgnn.layers.operator import LinearSumOperator, Operator, PlainRound, SumOperator
from idgnn.models.chunk_threads import in_threads
from idgnn.models.inputs import Inputs, check_one_color, of_data
from idgnn.models.large_graph import LargeGraph

if TYPE_CHECKING:
    from idgnn.models.idgnn import IDGNN
    from idgnn.models.inputs import AnyEncoder

# Of what is free; the rest is for other work on the machine.
_SHARE = 0.5
# An edge in both directions: the key and two ids, two ids; and while that is sorted, about as much again.
_EDGE_BYTES = 80
# Bytes of a chunk on a CPU, whose cache a larger one exceeds. Layers that sum take less at once: GIN on Gowalla's
# training graph (K = 3, width 64, one thread) took 4.1 s with 2^26, 5.5 s with 2^28 and 4.6 s with 2^25. Where rows
# share blocks of messages, every chunk looks them up among all: SAGE and GAT took twice as long or more with 2^26.
CPU_CHUNK, _CPU_CHUNK_OF_SUMS = 2**28, 2**26
# Chunks that are worked on at once. More threads would wait for the Python interpreter, which takes a tenth of a chunk.
_MOST_THREADS = 8
_TRIPLES = 2**18  # that are listed at a time, unless one answer has more
_UNITS = {"": 1} | {
    f"{letter}{binary}": (1024 if binary else 1000) ** power
    for power, letter in enumerate("KMGT", 1)
    for binary in ("", "I")
}

Finished = Callable[[Tensor, Tensor, int], None]
"""(positions among the roots, their embeddings, how many different roots are done) after each chunk."""


def embed(
    model: AnyEncoder,
    data: Data,
    roots: Tensor | Sequence[int] | np.ndarray | None,
    memory: float | str | None,
    out: Tensor | np.ndarray | None,
    progress: bool,
) -> Tensor:
    """:meth:`idgnn.IDGNN.embed`."""
    roots = as_tensor(roots, "roots")
    shape = embedding_shape(model, data, roots)
    into = torch.empty(shape, dtype=model.dtype) if out is None else _writable(out, shape)
    with EmbeddingBar(shape[0], progress) as bar:

        def finished(positions: Tensor, values: Tensor, done: int) -> None:
            into[positions.to(into.device)] = values.to(into)
            bar.advance(positions.numel())

        embed_by_chunks(model, data, roots, memory, finished)
    return into


def embedding_shape(model: AnyEncoder, data: Data, roots: Tensor | None) -> torch.Size:
    """The number of roots, and the width of what is returned for each."""
    queries = as_queries(roots, check_graph(data), torch.device("cpu"))
    return torch.Size([queries.node.numel(), _embedding_channels(model, data, queries)])


def _embedding_channels(model: AnyEncoder, data: Data, queries: Queries) -> int:
    """The width of an embedding; a wrapped model shows it in its answer to the first query."""
    if hasattr(model, "pair_channels"):
        model = cast("IDGNN", model)
        return model.embedding_channels if queries.own else model.pair_channels
    if not queries.node.numel() or not data.num_nodes:
        return 0
    first, device = torch.stack([queries.node[:1], queries.color[:1]]), next(model.parameters()).device
    graph = LargeGraph.of_inputs(model, of_data(data, model, device))
    with torch.no_grad(), evaluating(model):
        return model.run(graph.prepare(first.to(device))).size(-1)


def embed_by_chunks(
    model: AnyEncoder, data: Data, roots: Tensor | None, memory: float | str | None, finished: Finished, start: int = 0
) -> None:
    """Embeds the roots in an order of its own, from the `start`-th on, and hands over each chunk when it is done.

    Roots that are named twice are computed once and handed over together. The order depends on the roots alone.
    """
    device = next(model.parameters()).device
    inputs = of_data(data, model, device)
    queries = as_queries(roots, inputs.num_nodes, device)
    if inputs.num_nodes == 0:
        return
    if model.second_nodes is None:
        check_one_color(roots)
        asked, inverse = torch.unique(queries.color * inputs.num_nodes + queries.node, return_inverse=True)
    else:
        every = queries.node if roots is None else roots.to(device, torch.long)
        asked, inverse = torch.unique(every, return_inverse=True, dim=-1)
    size = asked.size(-1)
    place, ptr = torch.argsort(inverse, stable=True).cpu(), pointers(inverse.sort().values, size).cpu()
    if start == size:
        return
    # States are kept and added up over rounds, in the precision of the weights.
    with torch.no_grad(), evaluating(model), torch.autocast(device.type, enabled=False):
        unreached, bound = 0, as_bytes(memory, device)
        if model.second_nodes is None:
            node = (asked % inputs.num_nodes)[start:]
            different = Queries(node, node if queries.own else (asked // inputs.num_nodes)[start:])
            answers = _answers(model, inputs, different, bound)
        else:
            answers = _two_color_answers(model, inputs, asked[..., start:], bound)
        for first, last, values, missed in answers:
            positions = place[ptr[start + first] : ptr[start + last]]
            number = torch.repeat_interleave(ptr[start + first : start + last + 1].diff())
            finished(positions, values.cpu()[number], start + last)
            unreached += missed
    warn_unreached(unreached, size, model.num_layers or 1, stacklevel=3)


def _answers(
    model: AnyEncoder, inputs: Inputs, queries: Queries, memory: int
) -> Iterator[tuple[int, int, Tensor, int]]:
    """First and last + 1 query of each chunk, its embeddings, and how many of them no color reaches."""
    budget = _Budget(model, inputs, memory)
    if model.operator is None:
        yield from _by_row_graphs(model, inputs, queries, budget)
        return
    x, model = inputs.x, cast("IDGNN", model)
    if model.identity == "fast":
        scale = computed_scale(model.cycle_scale)
        counted = cycle_features(
            inputs.edge_index, inputs.num_nodes, model.cycle_length, scale, memory=int(budget.room)
        )
        x = torch.cat([x, counted.to(x)], dim=-1)
    network = _KeptNetwork(model, inputs, x, torch.cat([queries.node, queries.color]), budget)
    if model.identity == "full":
        chunks = network.chunks(queries)
        found = in_threads(lambda some: network.colored(queries.slice(*some)), chunks, budget.room, budget.num_threads)
        for (first, last), answer in found:
            yield first, last, *answer
        return
    size = max(int(budget.room / budget.row), 1)
    for first in range(0, queries.node.numel(), size):
        some = queries.slice(first, last := min(first + size, queries.node.numel()))
        h = model.finish(network.states[-1].index_select(0, some.node))
        if not some.own:
            h = torch.cat([h, model.finish(network.states[-1].index_select(0, some.color))], dim=-1)
        yield first, last, h, 0


def _two_color_answers(
    model: AnyEncoder, inputs: Inputs, roots: Tensor, memory: int
) -> Iterator[tuple[int, int, Tensor, int]]:
    """The same for nodes, pairs or triples under two colors: all that is pooled into an answer is in one chunk."""
    budget, second, size = _Budget(model, inputs, memory), model.second_nodes, roots.size(-1)
    assert second is not None
    network = graph = None
    if model.operator is None:
        graph = LargeGraph.of_inputs(model, inputs)
        indexed, num_layers = graph.graph, graph.num_layers
    else:
        model = cast("IDGNN", model)
        read = roots[0] if roots.dim() == 2 and roots.size(0) == 3 else roots.flatten()
        network = _KeptNetwork(model, inputs, inputs.x, read, budget)
        indexed, num_layers = network.graph, model.num_layers
    listed = roots.dim() == 2 and roots.size(0) == 3
    for begin, end in cut(second.most(indexed, roots), _TRIPLES):
        asked = second.read(indexed, roots[..., begin:end])
        rows, between, edges = two_color_bounds(indexed, num_layers, asked.queries)
        each = budget.cost(rows + 1, between, edges, network is not None and network.keeps_sums)
        cost = each.new_zeros(asked.num_answers).index_add_(0, asked.owner, each)
        for first, last in cut(cost, budget.chunk):
            some = second.read(indexed, roots[..., begin + first : begin + last])
            if last == first + 1 and float(cost[first]) > budget.room:  # by the bound; it may be less
                _check_two_colors(indexed, num_layers, some, budget, network is not None and network.keeps_sums)
            if network is not None:
                values, missed = network.two_colors(some)
            else:
                assert graph is not None
                values, missed = model.run(graph.prepare_reading(some)), 0
            yield begin + first, begin + last, values, missed if listed else 0
    assert end == size


def _check_two_colors(graph: IndexedGraph, num_layers: int, asked: Reading, budget: _Budget, sums: bool) -> None:
    """Refuses an answer whose rows do not fit into the room."""
    rows, edges = 0, 0
    for found in count_rows(graph, num_layers, asked.queries, exchange=False):
        rows, edges = found.rows, found.edges
    number, room = torch.tensor(float(rows)), budget.room
    cost = float(budget.cost(number, torch.tensor(float(edges)), torch.tensor(float(edges)), sums))
    if cost > room:
        raise TooLargeError(
            f"one embedding alone has {rows:,} states of its own under two colors and takes about {readable(cost)}, "
            f"but of the memory that was given {readable(room)} are left for that. Give about "
            f"{readable(2 * (cost - room))} more (memory=..., --memory). Networks with second='neighbors', one color, "
            "or fewer layers need less."
        )


def _by_row_graphs(
    model: AnyEncoder, inputs: Inputs, queries: Queries, budget: _Budget
) -> Iterator[tuple[int, int, Tensor, int]]:
    """Layers that are not ours: each chunk of queries runs on the identity graph of its neighborhood."""
    graph = LargeGraph.of_inputs(model, inputs)
    cost = torch.zeros(queries.node.numel(), device=queries.node.device)  # all in one go
    if model.identity == "full":
        rows, _, edges = row_bounds(graph.graph, graph.num_layers, queries)
        cost = rows * budget.row + edges * budget.message
    for first, last in cut(cost, budget.chunk):
        some = queries.slice(first, last)
        ready, missed = graph.prepare_rows(some)
        yield first, last, model.run(ready), missed


class _Budget:
    """Bytes that a network takes, by what they are spent on, and what is left for chunks beside all that is kept.

    On a ring of 30,000 nodes of degree 10, where the bounds on rows and edges are tight, chunks of 0.4 and 0.7 GB took
    55 to 88 % of what these say (GIN, K = 3, width 64, resident memory of the process).
    """

    edge = 120  # between rows of a chunk that is looked at

    def __init__(self, model: AnyEncoder, inputs: Inputs, memory: int) -> None:
        num_edges, operator, num_layers = inputs.edge_index.size(1), model.operator, model.num_layers or 1
        width = max((max(weight.shape) for weight in model.parameters() if weight.dim() > 1), default=1)
        if operator is not None:
            width = cast("IDGNN", model).settings["hidden_channels"]
        state, named = width * inputs.x.element_size(), operator is not None
        self.row = 8 * state + 160  # of a chunk, while a round is computed
        # Of a part of a round: its indices, and where messages differ from edge to edge the messages themselves.
        self.message = 4 * state + 160 if operator is None or operator.takes_edge_attr else 200
        # Plain states before and after each round, the result, and the messages and sums of layers that sum.
        arrays = num_layers + 2
        if model.identity == "full" and operator is not None and operator.sums:
            linear = isinstance(operator, LinearSumOperator)  # one array of messages; GIN's sums with own states
            arrays += num_layers + (1 + num_layers * bool(operator.own_weight) if linear else num_layers)
        kept = arrays * inputs.num_nodes * state + (num_edges + inputs.num_nodes) * _EDGE_BYTES
        if model.identity == "full" and operator is not None and operator.takes_blocks:
            # Their aggregates, and their numbers behind the in-neighbors.
            kept += num_layers * 2 * num_edges // BLOCK * state + 8 * num_edges
        busiest = int(torch.bincount(inputs.edge_index[1], minlength=1).max()) + 1
        least = 2 * self.message * (busiest if named else num_edges)
        if memory < kept + least:
            where = f"the busiest node, {busiest:,} of them," if named else f"all nodes, {num_edges:,} of them,"
            raise TooLargeError(
                f"memory is {readable(memory)}, but the plain states and the edges of {inputs.num_nodes:,} nodes take "
                f"{readable(kept)}, and the messages into {where} {readable(least)}: expected at least "
                f"{readable(kept + least)}. Give more (memory=..., --memory), or, if there are many graphs, take fewer "
                "of them at a time."
            )
        self.room = (memory - kept if named else memory - kept - least / 2) / 2
        on_cpu = _CPU_CHUNK_OF_SUMS if operator is not None and operator.sums else CPU_CHUNK
        cpu = inputs.x.device.type == "cpu"
        # Many small operations on indices take most of the time, which one thread does as fast as several.
        self.num_threads = min(torch.get_num_threads(), _MOST_THREADS) if cpu and named else 1
        self.chunk = min(self.room / self.num_threads, on_cpu) if cpu else self.room

    def cost(self, rows: Tensor, between: Tensor, edges: Tensor, sums: bool) -> Tensor:
        """Bytes of chunks with so many rows, edges looked at between them, and edges into them.

        Layers that sum (`sums`) do not receive the messages over all edges into rows again.
        """
        cost = rows * self.row + between * self.edge
        return cost if sums else cost + edges * self.message


class _KeptNetwork:
    """A network of our own layers on one graph: the plain states of all nodes, then the rows of some queries at a time.

    Args:
        model: The network, in evaluation mode.
        inputs: The graph.
        x: Features of the nodes `[num_nodes, in_channels]`, with the counts of ID-GNN-Fast.
        read: The nodes that will be queried. Of all others, only the states that theirs depend on are computed.
        budget: Bytes for what is worked on.
    """

    def __init__(self, model: IDGNN, inputs: Inputs, x: Tensor, read: Tensor, budget: _Budget) -> None:
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

    def chunks(self, queries: Queries) -> Iterator[tuple[tuple[int, int], float]]:
        """Runs of queries, in their order, that fit into the room, and the bytes of each; refuses one that does not
        fit alone."""
        bounds = row_bounds(self.graph, self.model.num_layers, queries)
        cost = self.budget.cost(*bounds, self.keeps_sums)
        for query in (cost > self.budget.room).nonzero().flatten():  # by the bound; what it really costs may be less
            alone = queries.slice(int(query), int(query) + 1)
            self._check(find_cone(self.graph, self.model.num_layers, alone), alone)
        total = torch.cat([cost.new_zeros(1), cost.cumsum(0)]).tolist()
        for first, last in cut(cost, self.budget.chunk):
            yield (first, last), total[last] - total[first]

    def colored(self, queries: Queries) -> tuple[Tensor, int]:
        """Embeddings of nodes under colors, and how many of them no color reaches: those are the plain ones."""
        answer, unreached = self._states(find_cone(self.graph, self.model.num_layers, queries), queries)
        return self.model.finish(answer), unreached

    def two_colors(self, asked: Reading) -> tuple[Tensor, int]:
        """Embeddings of what is pooled from states under two colors, and how many of these no color reaches."""
        answer, unreached = self._states(all_rows(self.graph, self.model.num_layers, asked.queries), asked.queries)
        size = asked.owner.numel()
        every, none = torch.arange(size, device=asked.owner.device), asked.owner[:0]
        pool = group_messages(every, asked.owner, none, size, asked.num_answers, gradients=False)
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
            h = self.model.after(layer, out)
        return h.index_select(0, schedule.answer)

    def _sources(self, layer: int, plain: Tensor, own: Tensor, exchanged: bool) -> Tensor:
        """The states of all sources of a round: those of plain rows, and those of rows with states of their own."""
        if not plain.numel():
            return own
        if exchanged and isinstance(self.operators[layer], LinearSumOperator):
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
                out = self._plain_part(layer, states[layer], sent, nodes[first:last])
                states[layer + 1][nodes[first:last]] = self.model.after(layer, out)
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

    def _check(self, cone: Cone, query: Queries) -> None:
        rows, node = cone.key.numel(), cone.node
        edges = self.graph.into.degree_of(node).sum()
        between = torch.stack([each.degree_of(node).sum() for each in self.graph.ascending]).sum()
        cost = self.budget.cost(torch.tensor(rows), between, edges, self.keeps_sums)
        room = self.budget.room
        if cost > room:
            raise TooLargeError(
                f"the embedding of node {int(query.node)} alone has {rows:,} states of its own and takes about "
                f"{readable(float(cost))}, but of the memory that was given {readable(room)} are left for that. "
                f"Give about {readable(2 * (float(cost) - room))} more (memory=..., --memory), or, if there are many "
                "graphs, take fewer of them at a time. ID-GNN-Fast and networks with fewer layers need less."
            )


def as_bytes(memory: float | str | None, device: torch.device) -> int:
    """A number of bytes, or a size such as `"4GiB"`; `None` is half of what is free on the device.

    Example:
        >>> as_bytes("1.5 GiB", torch.device("cpu")) == 3 * 2**29
        True
    """
    if memory is None:
        return int(_SHARE * free_memory(device))
    size = float(memory) if isinstance(memory, Real) else 0.0
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]I?)?B?\s*", memory.upper())
        size = 0.0 if match is None else float(match[1]) * _UNITS[match[2] or ""]
    if isinstance(memory, bool) or not 1 <= size < math.inf:
        raise ValueError(
            f"memory is {memory!r}, expected a number of bytes or a size such as '512MiB' or '4GiB': what embedding "
            "may take. Leave it out for half of what is free."
        )
    return int(size)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within the block the network is in evaluation mode; after it every part is in the mode that it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _writable(out: Tensor | np.ndarray, shape: torch.Size) -> Tensor:
    """The array as a tensor on the same memory, if embeddings can be written to it."""
    expected = f"expected a tensor or numpy array of numbers like float32, of shape {list(shape)}: a row per root."
    if not isinstance(out, Tensor | np.ndarray):
        raise ValueError(f"out is a {type(out).__name__}, {expected}")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError('out is read-only, expected an array that can be written to: a memmap with mode "r+" or "w+".')
    into = torch.from_numpy(out) if isinstance(out, np.ndarray) else out
    if into.shape != shape or not into.is_floating_point():
        raise ValueError(f"out has shape {list(into.shape)} and dtype {into.dtype}, {expected}")
    if any(step == 0 and size > 1 for step, size in zip(into.stride(), into.shape, strict=True)):
        raise ValueError("out is expanded: several of its entries are one place in memory. Pass out.contiguous().")
    return into


class EmbeddingBar:
    """A bar that shows how much is done, if one is wanted."""

    def __init__(self, total: int, wanted: bool, title: str = "embedding") -> None:
        self.bar = None
        if wanted:
            from rich.progress import Progress

            self.bar = Progress(transient=True)
            self.task = self.bar.add_task(title, total=total)

    def __enter__(self) -> EmbeddingBar:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, number: int) -> None:
        """So many more are done."""
        if self.bar is not None:
            self.bar.advance(self.task, number)
