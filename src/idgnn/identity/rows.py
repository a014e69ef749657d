"""The rows that a network is run on, whatever they stand for: nodes, an identity graph, ego networks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.identity_graph import IdentityGraph


@dataclass(frozen=True)
class Rows:
    """A graph of copies of nodes and edges, some of them colored, and the rows that answer the queries."""

    edge_index: Tensor  # [2, edges]
    edge: Tensor  # [edges] the edge of the original graph that each is a copy of
    node: Tensor  # [rows] the node of the original graph that each is a copy of
    colored: Tensor  # [rows]
    query_row: Tensor  # [queries]

    @staticmethod
    def of(graph: IdentityGraph) -> Rows:
        """The rows of an identity graph."""
        return Rows(graph.edge_index, graph.edge, graph.node, graph.colored, graph.query_row)


def plain_rows(edge_index: Tensor, num_nodes: int, colored: Tensor | None = None) -> Rows:
    """The nodes themselves, each read where it is; none of them colored, or those that are named."""
    node = torch.arange(num_nodes, device=edge_index.device)
    edge = torch.arange(edge_index.size(1), device=edge_index.device)
    if colored is None:
        colored = torch.zeros_like(node, dtype=torch.bool)
    return Rows(edge_index, edge, node, colored, node)
