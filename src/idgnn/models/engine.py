"""How ID-GNN-Full is computed: the rows of a query set, and the rounds over them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.ego import ego_networks
from idgnn.identity.identity_graph import IdentityGraph, identity_graph
from idgnn.identity.rounds import Schedule, trimmed, whole

Engine = Literal["trimmed", "graph", "ego"]


def rows_of(edge_index: Tensor, num_nodes: int, num_layers: int, queries: Tensor | None, engine: Engine) -> Data:
    """The rows on which ID-GNN-Full runs: one identity graph, or an ego network per query (Algorithm 1)."""
    data = Data(edge_index=edge_index, num_nodes=num_nodes)
    build = ego_networks if engine == "ego" else identity_graph
    return build(data, num_layers, queries)


def plain_rows(edge_index: Tensor, num_nodes: int) -> Data:
    """The rows on which a plain GNN runs: the nodes, none of them coloured."""
    node = torch.arange(num_nodes, device=edge_index.device)
    edge = torch.arange(edge_index.size(1), device=edge_index.device)
    coloured = torch.zeros_like(node, dtype=torch.bool)
    return Data(edge_index=edge_index, edge=edge, node=node, coloured=coloured, query_row=node, num_nodes=num_nodes)


def schedule_of(rows: Data, num_layers: int, engine: Engine, first_loop: int | None) -> Schedule:
    """The rounds over these rows: those that matter (`"trimmed"`), or all rows every time."""
    if engine == "trimmed" and isinstance(rows, IdentityGraph):
        return trimmed(rows, num_layers, first_loop)
    return whole(rows, num_layers, first_loop)
