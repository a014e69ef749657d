"""Carries the attributes of a graph over to its rows, and puts the rows of a batch of graphs where PyG expects them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from idgnn.identity.adjacency import inverse, pointers

ROW_KEYS = ("x", "node", "colored", "arrival", "before")
EDGE_KEYS = ("edge_index", "edge", "edge_attr", "edge_weight")


def carry_attributes(data: Data, graph: Data) -> None:
    """Features follow the rows, edge attributes the edges; all else is taken as it is. Changes `graph`."""
    for key, value in data.to_dict().items():
        if value is None or key in ("edge_index", "num_nodes", "_num_nodes", "ptr"):
            continue
        if key in graph:
            raise ValueError(
                f"the graph has an attribute {key!r}, and so has every identity graph. Rename yours, for example to "
                f"{'my_' + key!r}."
            )
        if key in ("x", "batch"):
            graph[key] = value[graph.node]
        elif key in ("edge_attr", "edge_weight"):
            graph[key] = value[graph.edge]
        else:
            graph[key] = value
    graph.num_nodes = graph.node.numel()


def regroup(graph: Any, data: Any) -> Any:
    """Orders rows and edges by the graph they belong to, as `Batch.from_data_list` has them, with all it keeps.

    `data` is a `Batch`, and so is the result; PyG gives batches the class of their graphs when they are made, so that
    no static type fits them.
    """
    num_nodes = graph.plain_row.numel()
    moved = _places(graph.batch, num_nodes)
    edge_moved = _places(graph.batch[graph.edge_index[1]], graph.plain_edge.numel())
    row_order, edge_order = inverse(moved), inverse(edge_moved)

    batch: Any = Batch(_base_cls=type(graph))
    for key, value in graph.to_dict().items():
        if key == "before":
            batch[key] = moved[value.index_select(0, row_order)]
        elif key in ROW_KEYS or key == "batch":
            batch[key] = value.index_select(0, row_order)
        elif key == "edge_index":
            batch[key] = torch.stack([moved.index_select(0, end.index_select(0, edge_order)) for end in value])
        elif key in EDGE_KEYS:
            batch[key] = value.index_select(0, edge_order)
        elif key in ("plain_row", "query_row"):
            batch[key] = moved[value]
        elif key == "plain_edge":
            batch[key] = edge_moved[value]
        else:
            batch[key] = value
    _keep_sizes(batch, data)
    return batch


def _keep_sizes(batch: Any, data: Any) -> None:
    """Sets what PyG keeps beside the tensors to take a batch apart again. Changes `batch`."""
    size = data.num_graphs
    row_ptr = pointers(batch.batch, size)
    edge_ptr = pointers(batch.batch[batch.edge_index[1]], size)
    node_ptr = pointers(data.batch, size)
    source_edge_ptr = pointers(data.batch[data.edge_index[1]], size)
    query_graph = batch.batch[batch.query_row]
    batch.ptr = row_ptr
    batch.num_layers = torch.full((size,), batch.num_layers)
    if "pooled_by" in batch:
        batch.pooled_by = [batch.pooled_by] * size
    batch._store._num_nodes = row_ptr.diff().tolist()
    batch._num_graphs = size
    if not hasattr(data, "_slice_dict") or not bool((query_graph.diff() >= 0).all()):
        return  # A batch made by hand, or queries out of order: PyG says so itself when asked to take it apart.

    slices: dict[str, Tensor] = {key: data._slice_dict[key] for key in data._slice_dict if key in batch}
    grows: dict[str, Tensor | None] = {key: data._inc_dict[key] for key in slices}
    none = torch.zeros(size, dtype=torch.long)
    row, node, edge = row_ptr.cpu(), node_ptr.cpu(), source_edge_ptr.cpu()
    slices |= {key: row for key in ROW_KEYS if key in batch}
    slices |= {key: edge_ptr.cpu() for key in EDGE_KEYS if key in batch}
    slices |= {"plain_row": node, "plain_edge": edge, "query_row": pointers(query_graph, size).cpu()}
    slices |= {"num_layers": torch.arange(size + 1)}
    if "pooled_into" in batch:
        slices["pooled_into"] = slices["query_row"]
        grows["pooled_into"] = pointers(batch.query_batch, size).cpu()[:-1]
    if "pooled_by" in batch:
        slices["pooled_by"], grows["pooled_by"] = torch.arange(size + 1), None
    grows |= dict.fromkeys((*(key for key in ROW_KEYS if key in batch), *EDGE_KEYS, "num_layers"), none)
    pointing = "edge_index", "plain_row", "query_row", "before"
    grows |= dict.fromkeys((key for key in pointing if key in batch), row[:-1])
    grows |= {"node": node[:-1], "edge": edge[:-1], "plain_edge": edge_ptr.cpu()[:-1]}
    batch._slice_dict, batch._inc_dict = slices, grows


def _places(graph: Tensor, first: int) -> Tensor:
    """Where each of two runs of elements, the first `first` and the others, goes when they are sorted by `graph`."""
    if not bool((graph[:first].diff() >= 0).all() and (graph[first:].diff() >= 0).all()):
        return inverse(torch.argsort(graph, stable=True))  # a batch made by hand, or rows of two colors
    # Both runs are sorted: an element moves up by the elements of the other run that belong before it.
    size = int(graph.max()) + 1 if graph.numel() else 0
    before = pointers(graph[first:], size)[graph[:first]]
    after = pointers(graph[:first], size)[graph[first:] + 1] - first
    return torch.arange(graph.numel(), device=graph.device) + torch.cat([before, after])
