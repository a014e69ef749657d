"""Exact embeddings of a heterogeneous graph, some queries at a time, within a stated amount of memory.

Where all edge types are fused, the plain states of all nodes, and the sums of plain messages, are computed once and
kept, round by round; some queries at a time then run the rounds of their own rows alone. Other networks run as in
training, some queries at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cone import cut
from idgnn.identity.cost import TooLargeError, readable
from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec
from idgnn.identity.hetero.schedule import TypedSchedule, all_slots, typed_schedule
from idgnn.identity.queries import Queries
from idgnn.identity.schedule_builder import make_schedule
from idgnn.identity.unreached import warn_unreached
from idgnn.models.embedding import EmbeddingBar, evaluating
from idgnn.models.embedding_memory import CPU_CHUNK, as_bytes
from idgnn.models.hetero.index import HeteroIndex
from idgnn.models.hetero.layer import FusedLayer

if TYPE_CHECKING:
    from idgnn.models.hetero.idgnn import HeteroIDGNN

# A row is held a few times over while a round runs, and so are its slots; index tensors come on top.
_STATES, _INDEX_BYTES = 8, 160


class _Kept:
    """The plain states of all nodes before each round, the sums of the messages that they send, and the last states."""

    def __init__(self, model: HeteroIDGNN, index: HeteroIndex) -> None:
        typed = index.typed
        segments = tuple((number, size) for number, size in enumerate(typed.num_nodes) if size)
        every = torch.arange(typed.total, device=index.device)
        ids = every.split([size for _, size in segments])
        starts = []
        for (number, _), nodes in zip(segments, ids, strict=True):
            kind = typed.schema.node_types[number]
            starts.append(index.start(kind, nodes - typed.first[kind]))
        h, slots = model.start(tuple(starts)), all_slots(index.graph, typed)
        self.states: list[Tensor] = []  # [nodes, channels]
        self.sums: list[Tensor] = []
        for layer in model.layers:
            assert isinstance(layer, FusedLayer)
            total = layer.total(h, slots, _weight(index))
            self.states.append(h)
            self.sums.append(total)
            h = layer.finish(total, h, segments)
        self.last = model.lin_out(h)


def embed(
    model: HeteroIDGNN,
    index: HeteroIndex,
    queries: TypedQuerySpec | TypedQueries,
    memory: float | str | None,
    progress: bool,
) -> Tensor:
    """:meth:`idgnn.HeteroIDGNN.embed`."""
    parsed = index.queries(queries)
    joined = parsed.joined(index.typed)
    device = index.device
    with torch.no_grad(), evaluating(model), EmbeddingBar(joined.node.numel(), progress) as bar:
        if model.identity != "full":
            out = model.run(index.prepare(parsed, gradients=False)).cpu()
            bar.advance(joined.node.numel())
            return out
        out = torch.empty(joined.node.numel(), model.embedding_channels, dtype=model.dtype)
        # Queries of one color share their rows, so they are answered together.
        order = torch.argsort(joined.color, stable=True)
        limit, unreached = _room(model, index, as_bytes(memory, device)), 0
        kept = _Kept(model, index) if index.fused else None
        row_bytes = _STATES * _item(model) * model.config.hidden_channels + _INDEX_BYTES
        if not index.sums:  # then every row receives all of its messages
            row_bytes *= 1 + float(index.graph.into.degree.max()) / 8
        for first, last in query_chunks(index.graph, joined.take(order), model.num_layers, row_bytes, limit):
            chosen = order[first:last]
            values, missed = _answers(model, index, kept, joined.take(chosen), parsed.read)
            out[chosen.cpu()] = values.cpu()
            unreached += missed
            bar.advance(chosen.numel())
    warn_unreached(unreached, joined.node.numel(), model.num_layers)
    return out


def _room(model: HeteroIDGNN, index: HeteroIndex, memory: int) -> int:
    """What is left for the rows of some queries beside the plain states, which are kept."""
    kept = (2 * model.num_layers + 1) * index.typed.total * model.config.hidden_channels * _item(model)
    if kept > memory:
        raise TooLargeError(
            f"the plain states of {index.typed.total:,} nodes in {model.num_layers} rounds take {readable(kept)}, but "
            f"memory is {readable(memory)}. Allow more, or use fewer layers or a smaller width."
        )
    return min(memory - kept, CPU_CHUNK) if index.device.type == "cpu" else memory - kept


def _item(model: HeteroIDGNN) -> int:
    """Bytes of a number."""
    return torch.empty(0, dtype=model.dtype).element_size()


def _answers(
    model: HeteroIDGNN, index: HeteroIndex, kept: _Kept | None, queries: Queries, read: str
) -> tuple[Tensor, int]:
    """The answers to some queries, and how many of them no color reaches: those are plain."""
    graph, num_layers = index.graph, model.num_layers
    cone, changed = index.rows(queries, read)
    there = cone.find(queries)[1]
    if kept is None:
        exchange = None if index.sums else False
        rounds = make_schedule(
            graph, queries, num_layers, exchange=exchange, cone=cone, changed=changed, gradients=False
        )
        return model.run(index.ready(rounds, gradients=False)), int((~there).sum())
    out = kept.last.index_select(0, queries.node)
    reached = there.nonzero().flatten()
    if reached.numel() == 0:
        return out, queries.node.numel()
    rounds = make_schedule(
        graph,
        queries.take(reached),
        num_layers,
        exchange=True,
        cone=cone,
        changed=changed,
        plain_known=True,
        gradients=False,
    )
    schedule = typed_schedule(rounds, graph, index.typed, gradients=False)
    h = _run(model, index, kept, schedule)
    return out.index_copy(0, reached, model.lin_out(h).index_select(0, schedule.answer)), int((~there).sum())


def _run(model: HeteroIDGNN, index: HeteroIndex, kept: _Kept, schedule: TypedSchedule) -> Tensor:
    """The states of the last round, of rows of their own; plain ones are read from what is kept."""
    h = kept.states[0].index_select(0, schedule.node)
    for depth, (layer, round_) in enumerate(zip(model.layers, schedule.rounds, strict=True)):
        x = torch.cat([kept.states[depth].index_select(0, schedule.plain[depth]), h])
        h = layer(x, round_, _weight(index), (kept.states[depth], kept.sums[depth]))
    return h


def _weight(index: HeteroIndex) -> Tensor | None:
    assert not isinstance(index.edges, tuple)
    return index.edges


def query_chunks(
    graph: IndexedGraph,
    queries: Queries,
    num_layers: int,
    row_bytes: float,
    limit: float,
    beside: Tensor | None = None,
) -> Iterator[tuple[int, int]]:
    """Splits queries that are sorted by color into runs whose rows take at most so many bytes, as far as is known.

    Every walk from a color, and every walk to a query, is counted as if it led to a row of its own, but no color has
    more rows than there are nodes. `beside` `[queries]` are rows that each query takes besides.
    """
    one = torch.ones_like(graph.into.degree)
    ahead = graph.out.walk_sums(one, num_layers // 2)
    behind = graph.into.walk_sums(one, (num_layers - 1) // 2)
    first = torch.ones_like(queries.color, dtype=torch.bool)
    first[1:] = queries.color[1:] != queries.color[:-1]
    rows = behind.index_select(0, queries.node) + ahead.index_select(0, queries.color) * first
    # The rows of a color are counted query by query, up to the number of nodes.
    start = first.nonzero().flatten()
    number = first.cumsum(0) - 1
    total = rows.cumsum(0)
    before = (total - rows).index_select(0, start).index_select(0, number)
    capped = (total - before).clamp(max=graph.num_nodes)
    rows = torch.where(first, capped, capped - torch.cat([capped[:1], capped[:-1]]))
    yield from cut((rows if beside is None else rows + beside) * row_bytes, limit)
