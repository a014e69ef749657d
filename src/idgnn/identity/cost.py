"""What an identity graph will cost, known before it is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import Links
from idgnn.identity.checks import check_graph, check_num_layers, edges_of
from idgnn.identity.cone import cones
from idgnn.identity.queries import Queries, as_queries

# An edge holds two row ids and the id of the edge it copies; a row the id of its node, the arrival and the color.
_EDGE_BYTES, _ROW_BYTES = 24, 17


@dataclass(frozen=True)
class IdentityCost:
    """The size of an identity graph."""

    rows: int
    edges: int
    bytes: int
    """Of the graph alone, with the features and edge attributes that it carries; a network on it needs more."""


class TooLargeError(ValueError):
    """What was asked for would not fit into the memory that is free."""


def identity_cost(data: Data, num_layers: int, queries: Tensor | None = None) -> IdentityCost:
    """The rows, edges and bytes of :func:`idgnn.identity_graph` with the same arguments, without building it.

    Memory stays bounded however large the identity graph would be.

    Example:
        >>> star = Data(edge_index=torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]]), num_nodes=4)
        >>> identity_cost(star, num_layers=3)
        IdentityCost(rows=14, edges=24, bytes=814)
    """
    num_nodes = check_graph(data)
    check_num_layers(num_layers)
    links = Links.of(edges_of(data), num_nodes)
    asked = as_queries(queries, num_nodes, links.edge_index.device)
    return list(_running_cost(data, links, num_layers, asked))[-1]


def check_fits(data: Data, links: Links, num_layers: int, queries: Queries, times: int) -> None:
    """Refuses an identity graph that would not fit into the memory that is free, if `times` its size is needed."""
    free = free_memory(links.edge_index.device) // times
    # A bound is cheap to know; only if that is too much is the real cost worth finding out.
    if _upper_bound(data, links, num_layers, queries) <= free:
        return
    cost, enough = IdentityCost(0, 0, 0), ""
    for cost in _running_cost(data, links, num_layers, queries):
        if cost.bytes > 2 * free:  # hopeless; counting the rest could take long
            enough = "more than "
            break
    if cost.bytes > free:
        raise TooLargeError(
            f"the identity graph would have {enough}{cost.rows:,} rows and {cost.edges:,} edges and take {enough}"
            f"{readable(cost.bytes)}{f', and {times} times that to run on' if times > 1 else ''}, but "
            f"{readable(free * times)} are free. Use fewer layers, query some of the nodes at a time "
            "(queries=...; idgnn train --query-batch-size 1024), or use ID-GNN-Fast (idgnn.AddCycleCounts; --identity "
            "fast), which needs no identity graph."
        )


def check_room(rows: int, edges: int) -> None:
    """Refuses a batch of rows and edges if what a network takes to run on them is not free in main memory."""
    times = 8  # as for a whole identity graph: idgnn.models.planner
    needed, free = times * (rows * _ROW_BYTES + edges * _EDGE_BYTES), free_memory(torch.device("cpu"))
    if needed > free:
        raise TooLargeError(
            f"the batch has {rows:,} rows and {edges:,} edges and takes about {readable(needed)}, but "
            f"{readable(free)} are free. Use smaller batches, or draw some of the neighbors of each node (fanout)."
        )


def _running_cost(data: Data, links: Links, num_layers: int, queries: Queries) -> Iterator[IdentityCost]:
    """The cost of the plain rows, and after each part of the colors the cost so far."""
    degree = links.into.degree
    rows, edges = links.num_nodes, links.edge_index.size(1)
    for cone in cones(links, num_layers, queries):
        rows += cone.key.numel()
        edges += int(degree[cone.key % max(links.num_nodes, 1)].sum())
        yield IdentityCost(rows, edges, rows * _row_bytes(data) + edges * _edge_bytes(data))


def _upper_bound(data: Data, links: Links, num_layers: int, queries: Queries) -> float:
    """Bytes if every walk from a color, and every walk to a query, led to a row of its own."""
    each = _row_bytes(data) + links.into.degree * _edge_bytes(data)  # bytes of a row of each node
    ahead = links.out.walk_sums(each, num_layers // 2)[torch.unique(queries.color)]
    behind = links.into.walk_sums(each, (num_layers - 1) // 2)[queries.node]
    return float(each.sum() + ahead.sum() + behind.sum())


def _row_bytes(data: Data) -> int:
    x = data.x
    return _ROW_BYTES + (0 if x is None else x[:1].numel() * x.element_size())


def _edge_bytes(data: Data) -> int:
    carried = [data[key] for key in ("edge_attr", "edge_weight") if data.get(key) is not None]
    return _EDGE_BYTES + sum(value[:1].numel() * value.element_size() for value in carried)


def free_memory(device: torch.device) -> int:
    """Bytes that nobody uses at the moment."""
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
