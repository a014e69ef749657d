"""What a model is called with, brought to one form: features and edges of the original graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.checks import check_edge_index, check_edge_rows, check_features
from idgnn.identity.identity_graph import IdentityGraph


@dataclass(frozen=True)
class Inputs:
    """A graph with one row of features per node and one of attributes per edge."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    edge_weight: Tensor | None

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.x.size(0)


def given(
    x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None, batch: Tensor | None
) -> Inputs:
    """Takes a graph as it is, after a look at whether its parts fit together."""
    if not isinstance(x, Tensor):
        raise ValueError(
            f"x is a {type(x).__name__}, expected a tensor of shape [num_nodes, in_channels]. "
            "A graph without features may use x = torch.ones(num_nodes, 1)."
        )
    check_edge_index(edge_index, x.size(0))
    check_features(x, x.size(0))
    for name, values in (("edge_attr", edge_attr), ("edge_weight", edge_weight)):
        if values is not None:
            check_edge_rows(values, edge_index.size(1), name)
    if batch is not None:
        _check_batch(batch, edge_index, x.size(0))
    return Inputs(x, edge_index if edge_index.dtype == torch.long else edge_index.long(), edge_attr, edge_weight)


def given_with(graph: IdentityGraph, x: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None) -> Inputs:
    """Takes the edges from an identity graph; features and attributes are given per original node and edge, or per row
    and edge of the identity graph, as a `DataLoader` of identity graphs has them."""
    return Inputs(
        _original(x, graph.plain_row, graph.num_nodes, "x", "node"),
        graph.node[graph.edge_index[:, graph.plain_edge]],
        None if edge_attr is None else _original(edge_attr, graph.plain_edge, graph.num_edges, "edge_attr", "edge"),
        None
        if edge_weight is None
        else _original(edge_weight, graph.plain_edge, graph.num_edges, "edge_weight", "edge"),
    )


def _original(values: Tensor, plain: Tensor, num_rows: int, name: str, what: str) -> Tensor:
    if values.size(0) == plain.numel():
        return values
    if values.size(0) == num_rows:
        return values[plain]
    raise ValueError(
        f"{name} has {values.size(0)} rows, expected one per {what} of the original graph ({plain.numel()}) or of the "
        f"identity graph ({num_rows}). Was the identity graph built from another graph?"
    )


def _check_batch(batch: Tensor, edge_index: Tensor, num_nodes: int) -> None:
    if batch.shape != (num_nodes,):
        raise ValueError(f"batch has shape {list(batch.shape)}, expected [{num_nodes}]: the graph of each node.")
    across = batch[edge_index[0]] != batch[edge_index[1]]
    if bool(across.any()):
        edge = int(across.nonzero()[0])
        raise ValueError(
            f"{int(across.sum())} edges join nodes of different graphs, the first is edge {edge}: "
            f"{edge_index[:, edge].tolist()}. Was edge_index offset when the graphs were put into one batch?"
        )
