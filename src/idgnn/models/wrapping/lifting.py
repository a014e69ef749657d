"""From a call on a graph to the same call on the rows and edges of its identity graph, and back."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from idgnn.identity.identity_graph import IdentityGraph
from idgnn.models.inputs import check_identity_graph, original_edges
from idgnn.models.wrapping.arguments import ModelCall
from idgnn.models.wrapping.plan import Plan
from idgnn.models.wrapping.roles import NAMED, Roles

# What PyG's ready models take to trim a sampled batch.
_SAMPLED = ("num_sampled_nodes_per_hop", "num_sampled_edges_per_hop")


def lift(call: ModelCall, plan: Plan, roles: Roles, x: Tensor | None = None) -> ModelCall:
    """The same call on the rows and edges of a plan; `x`, if given, holds the states of its rows.

    Example:
        >>> import torch
        >>> from idgnn.identity.identity_graph import identity_graph
        >>> from idgnn.models.wrapping.plan import whole_plan
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import SAGEConv
        >>> x, edge_index = torch.tensor([[1.0], [2.0]]), torch.tensor([[0, 1], [1, 0]])
        >>> graph = identity_graph(Data(x=x, edge_index=edge_index), num_layers=1)
        >>> lift(ModelCall.of(SAGEConv(1, 1), (x, edge_index), {}), whole_plan(graph), Roles({})).x.flatten().tolist()
        [1.0, 2.0, 1.0, 2.0]
    """
    rows = {"node": (plan.num_nodes, plan.graph_rows), "edge": (plan.num_edges, plan.graph_edges)}

    def change(name: str, value: Any) -> Any:
        if value is call.x:
            return plan.lift_nodes(value) if x is None else x
        if value is call.edge_index:
            return plan.edge_index
        if name.split("[")[0] in _SAMPLED and value is not None:
            raise ValueError(
                f"the argument {name.split('[')[0]} describes a sampled neighborhood whose outer nodes are cut off "
                "layer by layer, and the rows of an identity graph are not in that order. Leave it out."
            )
        if name == "size" and value is not None:
            return (plan.num_rows, plan.num_rows)
        if name == "num_nodes" and value in rows["node"]:
            return plan.num_rows
        role = roles.of(name)
        if not isinstance(value, Tensor) or role in (None, "shared"):
            return value
        if value.dim() == 0 or value.size(0) not in rows[role]:
            if name in NAMED:
                return value  # the model says what is wrong with it
            raise ValueError(
                f"{name} has shape {list(value.shape)}, expected a row for each {role}: {rows[role][0]}. It was taken "
                f"to be per {role} when the model was first called; another role is said by "
                "identity_aware(module, per_node=..., per_edge=..., shared=...)."
            )
        return plan.lift_nodes(value) if role == "node" else plan.lift_edges(value)

    return call.map(change)


def original_call(call: ModelCall, graph: IdentityGraph, roles: Roles) -> ModelCall:
    """A call with an identity graph as one on the graph it was built from. Features, edges and everything else may be
    given per node and edge of the original graph, or per row and edge of the identity graph."""
    check_identity_graph(graph)
    nodes, edges, rows, row_edges = (
        graph.plain_row.numel(),
        graph.plain_edge.numel(),
        graph.node.numel(),
        graph.edge.numel(),
    )
    given = call.num_nodes, call.num_edges
    if given[0] not in (nodes, rows) or given[1] not in (edges, row_edges):
        raise ValueError(
            f"graph was built from {nodes} nodes and {edges} edges, but x and edge_index have {given[0]} and "
            f"{given[1]}. Pass the x and edge_index that it was built from, or its own."
        )
    original = original_edges(graph, call.edge_index)

    def change(name: str, value: Any) -> Any:
        if value is call.edge_index:
            return original
        role = "node" if value is call.x else roles.of(name)
        if isinstance(value, Tensor) and value.dim() and role != "shared":
            if value.size(0) == rows and rows != nodes and role != "edge":
                return value[graph.plain_row]
            if value.size(0) == row_edges and row_edges != edges and role != "node":
                return value[graph.plain_edge]
        return nodes if name == "num_nodes" and value == rows else value

    return call.map(change)
