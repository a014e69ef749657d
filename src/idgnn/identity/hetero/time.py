"""What was there at a time: graphs with timestamps, and queries with a time of their own.

A query with a time sees the nodes and edges that were there before, and nothing else. Nodes keep their numbers: those
of the future lose all of their edges, so that no message comes from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Batch, HeteroData

from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec, as_typed_queries
from idgnn.identity.hetero.types import EdgeType, TypedGraph

if TYPE_CHECKING:
    from idgnn.identity.hetero.graph import HeteroIdentityGraph


def snapshot(data: HeteroData, time: float, *, time_attr: str = "time", strict: bool = False) -> HeteroData:
    """The graph as it was at a time: the edges of that time between nodes of that time. Nodes keep their numbers.

    Args:
        data: A graph whose node types or edge types, at least one of them, have times `[num_nodes]` or `[num_edges]`.
            Types without times were always there.
        time: What happened at this time or earlier is there.
        time_attr: The name of the attribute that holds the times.
        strict: Whether only what happened earlier is there.

    Example:
        >>> data = HeteroData()
        >>> data["user"].num_nodes, data["order"].num_nodes = 1, 2
        >>> data["order"].time = torch.tensor([10, 20])
        >>> data["order", "by", "user"].edge_index = torch.tensor([[0, 1], [0, 0]])
        >>> snapshot(data, 15)["order", "by", "user"].edge_index.tolist()
        [[0], [0]]
        >>> snapshot(data, 10, strict=True).num_edges
        0
    """
    there = alive(data, time, time_attr, strict)
    keep: dict[EdgeType, Tensor] = {}
    for edge_type in data.edge_types:
        store = data[edge_type]
        edges = store.edge_index
        mask = torch.ones(edges.size(1), dtype=torch.bool, device=edges.device)
        for end, name in zip(edges, (edge_type[0], edge_type[2]), strict=True):
            if name in there:
                mask &= there[name].index_select(0, end)
        if store.get(time_attr) is not None:
            mask &= _past(store[time_attr], time, strict, edges.size(1), f"the edge type {edge_type}")
        keep[edge_type] = mask
    return data.edge_subgraph(cast(Any, keep))


def alive(data: HeteroData, time: float, time_attr: str, strict: bool) -> dict[str, Tensor]:
    """Which nodes were there at a time, for the node types that have times."""
    if not any(store.get(time_attr) is not None for store in data.stores):
        raise ValueError(
            f"no node type or edge type of the graph has an attribute {time_attr!r}, so that nothing is known about "
            "times. Set data[type].time, or name the attribute with time_attr=..."
        )
    return {
        name: _past(data[name][time_attr], time, strict, int(data[name].num_nodes or 0), f"the node type {name!r}")
        for name in data.node_types
        if data[name].get(time_attr) is not None
    }


def snapshots(times: Tensor) -> Iterator[tuple[float, Tensor]]:
    """The different times of queries, earliest first, and the positions of the queries of each."""
    order = torch.argsort(times, stable=True)
    values, counts = torch.unique_consecutive(times.index_select(0, order), return_counts=True)
    yield from zip(values.tolist(), order.split(counts.tolist()), strict=True)


def check_times(times: Any, num_queries: int, device: torch.device) -> Tensor:
    """Refuses anything but one time for each query."""
    try:
        times = torch.as_tensor(times, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"query_time is {times!r}, expected numbers, in the unit of the times of the graph: for dates for example "
            "seconds since 1970."
        ) from None
    if times.dim() == 0:
        times = times.expand(num_queries)
    if times.shape != (num_queries,) or bool(torch.isnan(times.double()).any()):
        raise ValueError(
            f"query_time has shape {list(times.shape)}, or a value that is not a number; expected one time for each of "
            f"the {num_queries} queries."
        )
    return times


def check_alive(queries: TypedQueries, there: dict[str, Tensor], time: float, strict: bool) -> None:
    """Refuses queries for nodes that were not there yet at the time of the query."""
    for name, ids in ((queries.read, queries.node), (queries.root, queries.color)):
        if name in there and not bool((mask := there[name].index_select(0, ids)).all()):
            late = ids[~mask]
            raise ValueError(
                f"{late.numel()} queries at time {time:g} name nodes of {name!r} that were not there "
                f"{'before' if strict else 'by'} then, the first is node {int(late[0])}. Ask for nodes of the past."
            )


def timed_identity_graph(
    data: HeteroData, num_layers: int, queries: TypedQuerySpec, query_time: Any, time_attr: str, strict: bool
) -> HeteroIdentityGraph:
    """The identity graphs of all snapshots that the queries need as one batch; `batch` of a row is its snapshot.

    It has a copy of the plain rows for each different time, so ask for queries of few times at once.
    """
    from idgnn.identity.hetero.graph import hetero_identity_graph  # which needs none of this

    typed = TypedGraph.of_data(data)
    parsed = as_typed_queries(queries, typed.schema, typed.size, typed.edge_index.device)
    times = check_times(query_time, parsed.node.numel(), parsed.node.device)
    graphs, places = [], [parsed.node[:0]]
    for time, chosen in snapshots(times):
        check_alive(parsed.take(chosen), alive(data, time, time_attr, strict), time, strict)
        past = snapshot(data, time, time_attr=time_attr, strict=strict)
        graphs.append(hetero_identity_graph(past, num_layers, parsed.take(chosen).spec))
        places.append(chosen)
    batch: Any = Batch.from_data_list(graphs)
    row = torch.empty_like(batch.query_row)
    row[torch.cat(places)] = batch.query_row
    batch.query_row, batch.read_type, batch.root_type = row, parsed.read, parsed.root
    return batch


def _past(times: Any, time: float, strict: bool, size: int, what: str) -> Tensor:
    if not isinstance(times, Tensor) or times.shape != (size,):
        given = list(times.shape) if isinstance(times, Tensor) else type(times).__name__
        raise ValueError(f"the times of {what} are {given}, expected a tensor [{size}]: one time each.")
    return times < time if strict else times <= time
