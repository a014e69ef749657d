"""From a graph to the rows and edges of its identity graph, for everything that a model is called with."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.utils import is_sparse

from idgnn.identity.checks import check_edge_index, check_features, check_one_per_edge
from idgnn.identity.identity_graph import IdentityGraph


@dataclass(frozen=True)
class Cover:
    """A graph each of whose rows and edges is a copy of a node and an edge of another, as an identity graph is."""

    node: Tensor  # [rows]
    edge: Tensor  # [edges]
    edge_index: Tensor  # [2, edges]


@dataclass(frozen=True)
class ModelCall:
    """The arguments of one call of a model, with their names as far as the model tells them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str | None, ...]  # of `args`
    x: Tensor
    edge_index: Tensor

    @property
    def num_nodes(self) -> int:
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    @property
    def named(self) -> list[tuple[str | None, Any]]:
        """All arguments with their names."""
        return [*zip(self.names, self.args, strict=True), *self.kwargs.items()]

    @property
    def settings(self) -> str:
        """The arguments that are no tensors: another value of one may mean another number of rounds."""
        return repr([(name, value) for name, value in self.named if isinstance(value, bool | int | float | str)])

    def check(self) -> None:
        """Refuses features and edges that do not fit together."""
        check_features(self.x, self.num_nodes)
        check_edge_index(self.edge_index, self.num_nodes)
        inside = [pair for _, value in self.named if isinstance(value, Data) for pair in value.to_dict().items()]
        for name, value in (*self.named, *inside):
            if name in ("edge_attr", "edge_weight") and isinstance(value, Tensor):
                check_one_per_edge(value, self.num_edges, name)

    @staticmethod
    def of(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ModelCall:
        """Finds `x` and `edge_index`: by name, else in PyG's order, else as attributes of a `Data`."""
        args = tuple(value.as_tensor() if isinstance(value, EdgeIndex) else value for value in args)
        kwargs = {key: value.as_tensor() if isinstance(value, EdgeIndex) else value for key, value in kwargs.items()}
        positional = [
            parameter.name
            for parameter in inspect.signature(module.forward).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        names: tuple[str | None, ...] = (*positional, *[None] * len(args))[: len(args)]
        named = {name: value for name, value in zip(names, args, strict=True) if name} | kwargs
        data = next((value for value in (*args, *kwargs.values()) if isinstance(value, Data)), None)
        if data is not None:
            x, edge_index = data.x, data.edge_index
        else:
            x = named.get("x", args[0] if args else None)
            edge_index = named.get("edge_index", args[1] if len(args) > 1 else None)
        if isinstance(x, Tensor) and x is edge_index:
            raise ValueError(
                f"{type(module).__name__} takes no features. What it keeps for each node has to be an argument, to be "
                "carried over to the identity graph: write it so that it is called as model(x, edge_index, ...)."
            )
        if not isinstance(x, Tensor) or x.dim() == 0:
            raise ValueError(
                f"{type(module).__name__} was called with x of type {type(x).__name__}, expected a tensor with one row "
                "per node. Call it as model(x, edge_index, ...), or with a PyG Data that has both."
            )
        if not isinstance(edge_index, Tensor) or is_sparse(edge_index):
            raise ValueError(
                f"{type(module).__name__} was called with edge_index of type {type(edge_index).__name__}, expected a "
                "[2, num_edges] tensor of node ids. A sparse matrix becomes one by torch_geometric.utils.to_edge_index."
            )
        return ModelCall(args, kwargs, names, x, edge_index)

    def double(self, module: nn.Module) -> ModelCall:
        """The same call in double precision."""

        def change(value: Any) -> Any:
            if isinstance(value, Data):
                return copy.copy(value).apply(change)
            return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value

        return ModelCall.of(module, tree_map(change, self.args), tree_map(change, self.kwargs))

    def map(self, change: Callable[[str | None, Any], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, each one changed with its name at hand."""
        args = tuple(change(name, value) for name, value in zip(self.names, self.args, strict=True))
        return args, {name: change(name, value) for name, value in self.kwargs.items()}


# What PyG's ready models take to trim a sampled batch.
_SAMPLED = ("num_sampled_nodes_per_hop", "num_sampled_edges_per_hop")


def lift(
    call: ModelCall, graph: IdentityGraph | Cover, x: Tensor | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the same call on the identity graph; `x`, if given, holds the states of its rows.

    What has one row per node is read by `graph.node`, what has one per edge by `graph.edge`; the rest stays.

    Example:
        >>> from idgnn.identity.identity_graph import identity_graph
        >>> from torch_geometric.nn import SAGEConv
        >>> x, edge_index = torch.tensor([[1.0], [2.0]]), torch.tensor([[0, 1], [1, 0]])
        >>> graph = identity_graph(Data(x=x, edge_index=edge_index), num_layers=1)
        >>> args, _ = lift(ModelCall.of(SAGEConv(1, 1), (x, edge_index), {}), graph)
        >>> args[0].flatten().tolist()
        [1.0, 2.0, 1.0, 2.0]
    """
    lifted_x = call.x[graph.node] if x is None else x
    num_rows = graph.node.numel()

    def change(name: str | None, value: Any) -> Any:
        if value is call.x:
            return lifted_x
        if value is call.edge_index:
            return graph.edge_index
        if isinstance(value, Data):
            return _lift_data(value, change, num_rows)
        if isinstance(value, dict):
            return {key: change(name, item) for key, item in value.items()}
        if name in _SAMPLED and value is not None:
            raise ValueError(
                f"the argument {name} describes a sampled neighborhood whose outer nodes are cut off layer by layer, "
                "and the rows of an identity graph are not in that order. Leave it out."
            )
        if isinstance(value, (tuple, list)):
            if name == "size":
                return (num_rows, num_rows)
            return type(value)(change(name, item) for item in value) if type(value) in (tuple, list) else value
        if name == "num_nodes" and value == call.num_nodes:
            return num_rows
        return _lift_tensor(name, value, call, graph) if isinstance(value, Tensor) else value

    return call.map(change)


def replace_x(call: ModelCall, x: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the same call on other states of the same nodes."""

    def change(_: str | None, value: Any) -> Any:
        if isinstance(value, Data):
            value = copy.copy(value)
            value.x = x
            return value
        return x if value is call.x else value

    return call.map(change)


def _lift_tensor(name: str | None, value: Tensor, call: ModelCall, graph: IdentityGraph | Cover) -> Tensor:
    if is_sparse(value) or isinstance(value, EdgeIndex) or (name and "index" in name and value.size(0) == 2):
        raise ValueError(
            f"the argument {name or 'without a name'} is a second set of edges, and an identity graph is built from "
            "edge_index alone. Put all edges into edge_index, tell them apart by an edge_type, and split them inside."
        )
    rows = value.size(0) if value.dim() else -1
    per_node, per_edge = rows == call.num_nodes, rows == call.num_edges
    if per_node and per_edge:
        if name is None:
            raise ValueError(
                f"the graph has as many nodes as edges, {rows}, and an argument with {rows} rows has no name that says "
                "which of the two it belongs to. Pass it by its name, for example edge_attr=... or batch=..."
            )
        per_node = not name.startswith("edge")
    if name and name.startswith("edge_") and per_edge:
        per_node = False
    if per_node:
        return value[graph.node]
    return value[graph.edge] if per_edge else value


def _lift_data(data: Data, change: Callable[[str | None, Any], Any], num_rows: int) -> Data:
    lifted = copy.copy(data)
    for key in data.to_dict():
        if key == "num_nodes":
            lifted.num_nodes = num_rows
        elif key == "ptr":
            del lifted.ptr  # the rows of one graph do not lie side by side
        else:
            lifted[key] = change(key, data[key])
    return lifted


def rows_of(output: Any, num_rows: int, read: Tensor | None, name: str) -> Any:
    """The rows `read` of an output with one row per node (all of them if `None`); refuses any other output."""
    if isinstance(output, (tuple, list)) and output:
        return type(output)(rows_of(part, num_rows, read, name) for part in output)
    if not isinstance(output, Tensor) or output.dim() == 0 or output.size(0) != num_rows:
        given = f"a tensor of shape {list(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"{name} returned {given} for {num_rows} nodes, expected one row per node: it seems to pool inside. Make "
            "its encoder identity-aware and pool after: global_add_pool(identity_aware(encoder)(x, edge_index), batch)."
        )
    return output if read is None else torch.index_select(output, 0, read)


def check_graph(graph: IdentityGraph, call: ModelCall, num_layers: int) -> None:
    """Refuses an identity graph that was built from another graph, or for fewer rounds."""
    if not isinstance(graph, Data) or "query_row" not in graph:
        raise ValueError(f"graph is a {type(graph).__name__}, expected what idgnn.identity_graph returns.")
    nodes, edges = graph.plain_row.numel(), graph.plain_edge.numel()
    if (nodes, edges) != (call.num_nodes, call.num_edges):
        raise ValueError(
            f"graph was built from {nodes} nodes and {edges} edges, but x and edge_index have {call.num_nodes} and "
            f"{call.num_edges}. Pass the x and edge_index that it was built from."
        )
    built_for = int(torch.as_tensor(graph.num_layers).min())  # a batch holds one number for each of its graphs
    if built_for < num_layers:
        raise ValueError(
            f"graph was built for {built_for} layers, but the model takes {num_layers} rounds of messages. Build it "
            f"with identity_graph(data, num_layers={num_layers})."
        )
