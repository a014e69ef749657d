"""What an identity graph will cost, known before it is built."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, overload

import psutil
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from idgnn.identity.adjacency import IndexedGraph, groups
from idgnn.identity.checks import check_graph, check_num_layers, edges_of
from idgnn.identity.cone import cones
from idgnn.identity.queries import Queries, as_queries
from idgnn.identity.two_color_counts import count_rows, two_color_bound

if TYPE_CHECKING:
    from idgnn.identity.hetero.queries import TypedQuerySpec

# A forward pass of width 64 on a star of 10,000 nodes took up to about 7 times the bytes of the identity graph.
WORKING = 8
# An edge holds two row ids and the id of the edge it copies; a row the id of its node, the arrival and the color, and
# where there are two colors, the row that it was before.
EDGE_BYTES, ROW_BYTES, BEFORE_BYTES = 24, 17, 8
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of options in malloc.h


@dataclass(frozen=True)
class IdentityCost:
    """The size of an identity graph."""

    rows: int
    edges: int
    bytes: int
    """Of the graph alone, with the features and edge attributes that it carries; a network on it needs more."""


class TooLargeError(ValueError):
    """What was asked for would not fit into the memory that is free."""


@overload
def identity_cost(data: Data, num_layers: int, queries: Tensor | None = None) -> IdentityCost: ...
@overload
def identity_cost(data: HeteroData, num_layers: int, queries: TypedQuerySpec) -> IdentityCost: ...
def identity_cost(data: Data | HeteroData, num_layers: int, queries: Any = None) -> IdentityCost:
    """The rows, edges and bytes of :func:`idgnn.identity_graph` with the same arguments, without building it.

    Memory stays bounded however large the identity graph would be.

    Example:
        >>> star = Data(edge_index=torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]]), num_nodes=4)
        >>> identity_cost(star, num_layers=3)
        IdentityCost(rows=14, edges=24, bytes=814)
    """
    if isinstance(data, HeteroData):
        from idgnn.identity.hetero.graph import hetero_identity_cost  # which is built on this

        return hetero_identity_cost(data, num_layers, queries)
    num_nodes = check_graph(data)
    check_num_layers(num_layers)
    edge_index = edges_of(data)
    parsed = as_queries(queries, num_nodes, edge_index.device)
    return cost_on(IndexedGraph(edge_index, num_nodes), data, num_layers, parsed)


def cost_on(graph: IndexedGraph, data: Data, num_layers: int, queries: Queries) -> IdentityCost:
    """The same for a graph that is indexed already."""
    return list(_running_cost(data, graph, num_layers, queries))[-1]


def cost_bound(
    graph: IndexedGraph, data: Data, num_layers: int, two_colors: Queries | None = None
) -> tuple[IdentityCost, bool]:
    """At most what the identity graph of all nodes costs, from sums over the edges alone, and whether it is the cost;
    or that of queries with two colors.

    Every walk of K // 2 steps from a color leads to a row of its own, but there are no more rows than nodes. In a graph
    with all reverse edges, the rows of a color are a ball of radius K // 2: up to 3 layers these are its neighbors, and
    the bound is the cost. In other graphs, so it is for one layer.

    Example:
        >>> star = Data(edge_index=torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]]), num_nodes=4)
        >>> cost_bound(IndexedGraph(star.edge_index, 4), star, num_layers=3)
        (IdentityCost(rows=14, edges=24, bytes=814), True)
    """
    num_nodes, degree = graph.num_nodes, graph.into.degree
    num_edges = graph.into.edge.numel()
    if two_colors is not None:
        one = torch.ones_like(degree)
        rows = num_nodes + int(_bound(graph, num_layers, two_colors, one))
        edges = num_edges + int(_bound(graph, num_layers, two_colors, degree))
        each = _row_bytes(data, two_colors), _edge_bytes(data)
        return IdentityCost(rows, edges, rows * each[0] + edges * each[1]), False
    exact = num_layers == 1 or (num_layers <= 3 and graph.symmetric)

    def reached(each: Tensor, most: int) -> int:
        """The sum of `each` over the rows of all colors, at most `most` for each color."""
        walks = graph.out.walk_sums(each, num_layers // 2)
        if not graph.symmetric:
            walks = walks + graph.into.walk_sums(each, (num_layers - 1) // 2)
        return int(walks.clamp(max=most).sum())

    if exact:
        beside = _distinct_neighbors(graph) if num_layers > 1 else graph.into.neighbor[:0]
        rows, edges = num_nodes + beside.numel(), int(degree.sum() + degree[beside].sum())
    else:
        rows, edges = reached(torch.ones_like(degree), num_nodes), reached(degree, num_edges)
    rows, edges = num_nodes + rows, num_edges + edges
    return IdentityCost(rows, edges, rows * _row_bytes(data) + edges * _edge_bytes(data)), exact


def _distinct_neighbors(graph: IndexedGraph) -> Tensor:
    """The other nodes that each node has edges from, each once: the lists of all nodes one after the other."""
    target, neighbor = groups(graph.into.ptr, graph.into.neighbor.numel()), graph.into.neighbor
    beside = target != neighbor
    return torch.unique((target * graph.num_nodes + neighbor)[beside]) % max(graph.num_nodes, 1)


def check_identity_graph_fits(data: Data, graph: IndexedGraph, num_layers: int, queries: Queries) -> None:
    """Refuses an identity graph that would not fit into the memory that is free."""
    each = _row_bytes(data, queries) + graph.into.degree * _edge_bytes(data)  # bytes of a row of each node
    running = _running_cost(data, graph, num_layers, queries)
    _check_fits(graph, num_layers, queries, each, ((cost, cost.bytes) for cost in running), "")


def check_schedule_fits(graph: IndexedGraph, num_layers: int, queries: Queries, exchange: bool) -> None:
    """Refuses queries if what a network takes to answer them in one go is not free.

    A row receives a message for each in-neighbor; where messages are exchanged, at most one from each row of its color.
    """
    each = WORKING * (ROW_BYTES + graph.into.degree * EDGE_BYTES)

    def running() -> Iterator[tuple[IdentityCost, float]]:
        for rows, edges in _counts(graph, num_layers, queries, exchange):
            cost = IdentityCost(rows, edges, rows * ROW_BYTES + edges * EDGE_BYTES)
            yield cost, WORKING * cost.bytes

    working = f", and {WORKING} times that to run on"
    _check_fits(graph, num_layers, queries, each, running(), working)


def _check_fits(
    graph: IndexedGraph,
    num_layers: int,
    queries: Queries,
    each: Tensor,
    running: Iterator[tuple[IdentityCost, float]],
    working: str,
) -> None:
    """Compares the cost with the memory that is free: first a bound, from the bytes of a row of each node."""
    free = free_memory(graph.into.edge.device)
    if float(each.sum()) + _bound(graph, num_layers, queries, each) <= free:
        return
    cost, needed, enough = IdentityCost(0, 0, 0), 0.0, ""
    for cost, needed in running:  # noqa: B007
        if needed > 2 * free:  # counting the rest could take long
            enough = "more than "
            break
    if needed > free:
        two = queries.second is not None
        fewer = "fewer second nodes (second='neighbors'; --second neighbors), one color, " if two else ""
        raise TooLargeError(
            f"the identity graph {'of two colors ' if two else ''}would have {enough}{cost.rows:,} rows and "
            f"{cost.edges:,} edges and take {enough}{readable(cost.bytes)}{working}, but {readable(free)} are free. "
            f"Use fewer layers, {fewer}query some of the nodes at a time (queries=...; idgnn train --query-batch-size "
            "1024), or use ID-GNN-Fast (idgnn.AddCycleCounts; --identity fast), which needs no identity graph."
        )


def _bound(graph: IndexedGraph, num_layers: int, queries: Queries, each: Tensor) -> float:
    """At most what all rows cost together, if a row of a node costs `each` `[num_nodes]`.

    Every walk from a color, and every walk to a query, is counted as if it led to a row of its own.
    """
    ahead = graph.out.walk_sums(each, num_layers // 2)
    behind = graph.into.walk_sums(each, (num_layers - 1) // 2)
    if queries.second is None:
        return float(ahead[torch.unique(queries.color)].sum() + behind[queries.node].sum())
    return float(two_color_bound(queries, ahead, behind).sum())


def check_room(rows: int, edges: int) -> None:
    """Refuses a batch of rows and edges if what a network takes to run on them is not free in main memory."""
    needed, free = WORKING * (rows * ROW_BYTES + edges * EDGE_BYTES), free_memory(torch.device("cpu"))
    if needed > free:
        raise TooLargeError(
            f"the batch has {rows:,} rows and {edges:,} edges and takes about {readable(needed)}, but "
            f"{readable(free)} are free. Use smaller batches, or draw some of the neighbors of each node (fanout)."
        )


def _running_cost(data: Data, graph: IndexedGraph, num_layers: int, queries: Queries) -> Iterator[IdentityCost]:
    """The cost of the plain rows, and after each part of the colors the cost so far."""
    each = _row_bytes(data, queries), _edge_bytes(data)
    for rows, edges in _counts(graph, num_layers, queries, exchange=False):
        yield IdentityCost(rows, edges, rows * each[0] + edges * each[1])


def _counts(graph: IndexedGraph, num_layers: int, queries: Queries, exchange: bool) -> Iterator[tuple[int, int]]:
    """The rows, and the messages into them, after each part of the colors; plain rows are counted first.

    A row receives a message from each in-neighbor; if messages are exchanged, at most one from each row of its color.
    """
    rows, edges = graph.num_nodes, graph.into.edge.numel()
    if queries.second is not None:
        for found in count_rows(graph, num_layers, queries, exchange):
            yield rows + found.rows, edges + found.edges
        return
    for cone in cones(graph, num_layers, queries):
        received = graph.into.degree_of(cone.node)
        if exchange:
            received = torch.minimum(received, torch.bincount(cone.color_number)[cone.color_number])
        rows, edges = rows + cone.key.numel(), edges + int(received.sum())
        yield rows, edges


def _row_bytes(data: Data, queries: Queries | None = None) -> int:
    x, two = data.x, queries is not None and queries.second is not None
    return ROW_BYTES + BEFORE_BYTES * two + (0 if x is None else x[:1].numel() * x.element_size())


def _edge_bytes(data: Data) -> int:
    carried = [data[key] for key in ("edge_attr", "edge_weight") if data.get(key) is not None]
    return EDGE_BYTES + sum(value[:1].numel() * value.element_size() for value in carried)


def free_memory(device: torch.device) -> int:
    """Bytes that are free at the moment."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # kept by PyTorch
        return torch.cuda.mem_get_info(device)[0] + unused
    return psutil.virtual_memory().available


def readable(size: float) -> str:
    """Bytes as people write them, such as 1.5 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


@cache
def keep_freed_memory() -> None:
    """Lets the C library keep large blocks of memory that are freed for what is allocated next.

    glibc returns what is free at the end of its heap, and every block above 32 MiB, to the system, which clears its
    pages before it hands them out again. With the large tensors of a training step on a CPU that takes a third to half
    of its time: an epoch of GIN on Gowalla's graph, by 20,000 roots, takes 8.3 s, and 4.5 s when blocks are kept; one
    of PyG's GAT made identity-aware, on ENZYMES, 1.0 s and 0.66 s. It holds for the whole process, and is left alone
    where the user has set one of glibc's MALLOC_ variables, and on systems without glibc.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, 2**30)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)
