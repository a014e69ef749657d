"""Exact embeddings of a graph of any size, some queries at a time, within a stated amount of memory.

The plain states of all nodes are computed once and kept, round by round; some queries at a time then run the same
schedule through the same layers as in training (:mod:`idgnn.identity.schedule`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn.identity.adjacency import IndexedGraph, pointers
from idgnn.identity.checks import check_graph
from idgnn.identity.cone import cut, row_bounds
from idgnn.identity.cost import TooLargeError, readable
from idgnn.identity.cycle_features import computed_scale, cycle_features
from idgnn.identity.queries import Queries, as_queries, as_tensor, is_triples
from idgnn.identity.second_nodes import Reading
from idgnn.identity.two_color_counts import count_rows, two_color_bounds
from idgnn.identity.unreached import warn_unreached
from idgnn.models.chunk_shares import WHOLE, Share
from idgnn.models.chunk_threads import in_threads
from idgnn.models.embedding_memory import MORE, Budget, as_bytes, largest_beyond
from idgnn.models.inputs import Inputs, check_one_color, of_data
from idgnn.models.kept_network import KeptNetwork
from idgnn.models.large_graph import LargeGraph

if TYPE_CHECKING:
    from idgnn.models.idgnn import IDGNN
    from idgnn.models.inputs import AnyEncoder

_TRIPLES = 2**18  # that are listed at a time, unless one answer has more

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
    model: AnyEncoder,
    data: Data,
    roots: Tensor | None,
    memory: float | str | None,
    finished: Finished,
    start: int = 0,
    share: Share = WHOLE,
) -> None:
    """Embeds the roots in an order of its own, from the `start`-th on, and hands over each chunk when it is done.

    Roots that are named twice are computed once and handed over together. The order depends on the roots alone.
    """
    device = next(model.parameters()).device
    inputs = of_data(data, model, device)
    queries = as_queries(roots, inputs.num_nodes, device)
    if inputs.num_nodes == 0:
        return
    distinct, inverse = distinct_roots(model, roots, queries, inputs.num_nodes)
    size = distinct.size(-1)
    place, ptr = torch.argsort(inverse, stable=True).cpu(), pointers(inverse.sort().values, size).cpu()
    if start == size:
        return
    # States are kept and added up over rounds, in the precision of the weights.
    with torch.no_grad(), evaluating(model), torch.autocast(device.type, enabled=False):
        unreached, bound = 0, as_bytes(memory, device)
        if model.second_nodes is None:
            node = distinct % inputs.num_nodes
            different = Queries(node, node if queries.own else distinct // inputs.num_nodes)
            answers = _answers(model, inputs, different, bound, start, share)
        else:
            answers = _two_color_answers(model, inputs, distinct, bound, start, share)
        for first, last, values, missed in answers:
            positions = place[ptr[first] : ptr[last]]
            number = torch.repeat_interleave(ptr[first : last + 1].diff())
            finished(positions, values.cpu()[number], last)
            unreached += missed
    if share.size == 1:
        warn_unreached(unreached, size, model.num_layers or 1)


def distinct_roots(model: AnyEncoder, roots: Tensor | None, queries: Queries, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The different roots, in the order in which they are computed, and the place of each root among them."""
    if model.second_nodes is None:
        check_one_color(roots)
        return torch.unique(queries.color * num_nodes + queries.node, return_inverse=True)
    every = queries.node if roots is None else roots.to(queries.node.device, torch.long)
    return torch.unique(every, return_inverse=True, dim=-1)


def _answers(
    model: AnyEncoder, inputs: Inputs, queries: Queries, memory: int, start: int, share: Share
) -> Iterator[tuple[int, int, Tensor, int]]:
    """First and last + 1 query of each chunk, its embeddings, and how many of them no color reaches."""
    budget = Budget(model, inputs, memory)
    if model.operator is None:
        graph = LargeGraph.of_inputs(model, inputs)
        for first, last in share.left(_row_graph_chunks(model, graph, queries, budget, share), start):
            ready, missed = graph.prepare_rows(queries.slice(first, last))
            yield first, last, model.run(ready), missed
        return
    x, model = inputs.x, cast("IDGNN", model)
    if model.identity == "fast":
        scale = computed_scale(model.cycle_scale)
        counted = cycle_features(
            inputs.edge_index, inputs.num_nodes, model.cycle_length, scale, memory=int(budget.room)
        )
        x = torch.cat([x, counted.to(x)], dim=-1)
    network = KeptNetwork(model, inputs, x, torch.cat([queries.node, queries.color]), budget)
    if model.identity == "full":
        chunks = network.chunks(queries, share, start)
        found = in_threads(lambda some: network.colored(queries.slice(*some)), chunks, budget.room, budget.num_threads)
        for (first, last), answer in found:
            yield first, last, *answer
        return
    each = torch.ones(queries.node.numel())
    for first, last in share.left(cut(each, min(max(budget.room / budget.row, 1), share.limit(each))), start):
        some = queries.slice(first, last)
        h = model.finish(network.states[-1].index_select(0, some.node))
        if not some.own:
            h = torch.cat([h, model.finish(network.states[-1].index_select(0, some.color))], dim=-1)
        yield first, last, h, 0


def _two_color_answers(
    model: AnyEncoder, inputs: Inputs, roots: Tensor, memory: int, start: int, share: Share
) -> Iterator[tuple[int, int, Tensor, int]]:
    """The same for nodes, pairs or triples under two colors: all that is pooled into an answer is in one chunk."""
    budget, second = Budget(model, inputs, memory), model.second_nodes
    assert second is not None
    network = graph = None
    if model.operator is None:
        graph = LargeGraph.of_inputs(model, inputs)
        indexed, num_layers = graph.graph, graph.num_layers
    else:
        model = cast("IDGNN", model)
        read = roots[0] if is_triples(roots) else roots.flatten()
        network = KeptNetwork(model, inputs, inputs.x, read, budget)
        indexed, num_layers = network.graph, model.num_layers
    keeps_sums = network is not None and network.keeps_sums
    most = second.most(indexed, roots)
    runs = share.left(cut(most, min(_TRIPLES, share.limit(most))), start)

    def bound(begin: int, end: int) -> Tensor:
        queries = second.read(indexed, roots[..., begin:end])
        rows, between, edges = two_color_bounds(indexed, num_layers, queries.queries)
        each = budget.cost(rows + 1, between, edges, keeps_sums)
        return each.new_zeros(queries.num_answers).index_add_(0, queries.owner, each)

    def cost_of(place: int) -> float:
        rows, edges = _two_color_rows(indexed, num_layers, second.read(indexed, roots[..., place : place + 1]))
        return float(budget.cost(torch.tensor(rows), torch.tensor(edges), torch.tensor(edges), keeps_sums))

    # All are looked at before the first is computed, so that what does not fit is refused at once.
    cost = torch.zeros(roots.size(-1), dtype=torch.float64, device=roots.device)
    for begin, end in runs:
        cost[begin:end] = bound(begin, end).to(cost)
    if (found := largest_beyond(budget.room, cost, cost_of)) is not None:
        place, size = found
        rows, _ = _two_color_rows(indexed, num_layers, second.read(indexed, roots[..., place : place + 1]))
        fewer = "" if second.second == "neighbors" else "second='neighbors', "
        raise TooLargeError(
            f"one embedding alone has {int(rows):,} states of its own under two colors and takes about "
            f"{readable(size)}, but of the memory that was given {readable(budget.room)} are left for that. "
            f"Give {readable(MORE * (size - budget.room))} more (memory=..., --memory). Networks with {fewer}one color "
            "or fewer layers need less."
        )
    for begin, end in runs:
        for first, last in cut(cost[begin:end], budget.chunk):
            some = second.read(indexed, roots[..., begin + first : begin + last])
            if network is not None:
                values, missed = network.two_colors(some)
            else:
                assert graph is not None
                values, missed = model.run(graph.prepare_reading(some)), 0
            yield begin + first, begin + last, values, missed if is_triples(roots) else 0


def _two_color_rows(graph: IndexedGraph, num_layers: int, queries: Reading) -> tuple[float, float]:
    """The rows and edges of what is pooled into answers."""
    rows = edges = 0
    for found in count_rows(graph, num_layers, queries.queries, exchange=False):
        rows, edges = found.rows, found.edges
    return float(rows), float(edges)


def _row_graph_chunks(
    model: AnyEncoder, graph: LargeGraph, queries: Queries, budget: Budget, share: Share
) -> Iterator[tuple[int, int]]:
    """Layers that are not ours: each chunk of queries runs on the identity graph of its neighborhood."""
    cost = torch.zeros(queries.node.numel(), device=queries.node.device)  # all in one go
    if model.identity == "full":
        rows, _, edges = row_bounds(graph.graph, graph.num_layers, queries)
        cost = rows * budget.row + edges * budget.message
        return cut(cost, min(budget.chunk, share.limit(cost)))
    return cut(cost, budget.chunk)


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
