"""What a model over several node types is called with, carried over to the rows of an identity graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch_geometric.data import HeteroData

from idgnn.identity.hetero.graph import HeteroIdentityGraph, TypedRows
from idgnn.identity.hetero.types import EdgeType, TypedGraph, check_hetero_graph
from idgnn.models.wrapping.hetero_trim import TypedTrim

Types = Mapping[Any, Tensor]  # by node type, or by edge type


@dataclass(frozen=True)
class HeteroCall:
    """The arguments of one call of a model; dictionaries by node type or edge type among them belong to rows or edges.

    A model may take a `HeteroData` in place of dictionaries.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    num_nodes: dict[str, int]
    edge_index: dict[EdgeType, Tensor]

    @staticmethod
    def of(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HeteroCall:
        """Finds the features and the edges: by name, else in PyG's order, else in a `HeteroData`."""
        name = type(module).__name__
        data = next((value for value in (*args, *kwargs.values()) if isinstance(value, HeteroData)), None)
        if data is not None:
            edges = {kind: data[kind].edge_index for kind in data.edge_types}
            return HeteroCall(args, kwargs, check_hetero_graph(data), edges)
        names = [parameter.name for parameter in inspect.signature(module.forward).parameters.values()]
        named = dict(zip(names, args, strict=False)) | kwargs
        x = _first(named, ("x_dict", "x"), args, 0)
        edges = _first(named, ("edge_index_dict", "edge_index"), args, 1)
        for given, what, form in ((x, "features", "{node type: x}"), (edges, "edges", "{edge type: edge_index}")):
            if not isinstance(given, Mapping) or not given or not all(isinstance(v, Tensor) for v in given.values()):
                raise ValueError(
                    f"{name} was called with {what} of type {type(given).__name__}, expected a dictionary {form} of "
                    "tensors. Call it as model(x_dict, edge_index_dict, ..., queries=...), or with a HeteroData."
                )
        ends = {end: kind for kind in edges if isinstance(kind, tuple) and len(kind) == 3 for end in kind[::2]}
        if absent := [end for end in ends if end not in x]:
            raise ValueError(
                f"{name} was called without features of the node type {absent[0]!r}, which the edge type "
                f"{ends[absent[0]]} names. Give a type that has none a constant, torch.ones(num_nodes, 1), or the ids "
                "torch.arange(num_nodes), if the model has an nn.Embedding for them."
            )
        return HeteroCall(args, kwargs, {kind: value.size(0) for kind, value in x.items()}, dict(edges))

    @property
    def device(self) -> torch.device:
        """Where the edges are."""
        return next(iter(self.edge_index.values())).device

    @property
    def settings(self) -> str:
        """What the number of rounds may depend on: the arguments that are no tensors, and the types that are given."""
        plain = [v for v in (*self.args, *self.kwargs.items()) if isinstance(v, bool | int | float | str | tuple)]
        return repr((plain, list(self.num_nodes), list(self.edge_index)))

    def typed(self) -> TypedGraph:
        """The graph of all types as one, after a look at whether its parts fit together."""
        return TypedGraph.of(self.num_nodes, self.edge_index, self.device)

    def map(self, node: Callable[[str, Tensor], Tensor], edge: Callable[[EdgeType, str, Tensor], Tensor]) -> HeteroCall:
        """The call with what belongs to nodes and to edges changed; `edge` is told `"edge_index"`, or another name."""
        found: dict[EdgeType, Tensor] = {}

        def edges(kind: EdgeType, name: str, value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            # Those of a HeteroData that came from another process are copies.
            if value is not self.edge_index.get(kind) and name != "edge_index":
                return edge(kind, name, value)
            if kind not in found:
                found[kind] = edge(kind, "edge_index", value)
            return found[kind]

        def inside(value: Any) -> Any:
            if isinstance(value, HeteroData):
                return self._map_data(value, node, edges)
            if not isinstance(value, Mapping):
                return value
            changed = {}
            for kind, item in value.items():
                if kind in self.edge_index:
                    changed[kind] = edges(kind, "", item)
                elif kind in self.num_nodes and isinstance(item, Tensor):
                    changed[kind] = node(kind, item)
                else:
                    changed[kind] = item
            return changed

        args = tuple(map(inside, self.args))
        kwargs = {key: inside(value) for key, value in self.kwargs.items()}
        return replace(self, args=args, kwargs=kwargs, edge_index=found or self.edge_index)

    def _map_data(self, data: HeteroData, node: Any, edges: Any) -> HeteroData:
        changed = HeteroData()
        for kind in data.node_types:
            store = data[kind]
            changed[kind].num_nodes = store.num_nodes
            for key, value in store.items():
                if store.is_node_attr(key) and isinstance(value, Tensor):
                    changed[kind][key] = node(kind, value)
                    changed[kind].num_nodes = changed[kind][key].size(0)
        for kind in data.edge_types:
            for key, value in data[kind].items():
                if key == "edge_index" or (data[kind].is_edge_attr(key) and isinstance(value, Tensor)):
                    changed[kind][key] = edges(kind, key, value)
        return changed

    def double(self) -> HeteroCall:
        """The same call in double precision."""

        def double(value: Any) -> Any:
            return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value

        same = self.map(lambda _, value: double(value), lambda kind, name, value: double(value))
        return replace(same, kwargs={key: tree_map(double, value) for key, value in same.kwargs.items()})


@dataclass(frozen=True)
class TypedPlan:
    """The rows and edges of each type that a model is run on, each a copy of a node and an edge of another graph."""

    node: Mapping[str, Tensor]  # [rows]
    edge: Mapping[EdgeType, Tensor]  # [edges]
    edge_index: Mapping[EdgeType, Tensor]  # [2, edges]
    colored: Mapping[str, Tensor]  # [rows]
    plain_row: Mapping[str, Tensor]  # [nodes] the rows that are the original graph itself
    num_edges: Mapping[EdgeType, int]  # of the original graph
    read: str
    answer: Tensor  # [queries] rows of the type that is read
    trim: TypedTrim | None = None  # which rows and edges each round takes; `None`: all of them

    @property
    def num_outputs(self) -> int:
        """The number of rows of the type that is read that a colored run returns."""
        return self.node[self.read].numel() if self.trim is None else self.trim.num_targets[-1][self.read]

    @staticmethod
    def of_rows(rows: TypedRows, typed: TypedGraph) -> TypedPlan:
        """Of an identity graph."""
        device = typed.edge_index.device
        plain = {kind: torch.arange(size, device=device) for kind, size in typed.size.items()}
        num_edges = dict(zip(typed.schema.edge_types, typed.num_edges, strict=True))
        read, answer = rows.queries.read, rows.query_row
        return TypedPlan(rows.node, rows.edge, rows.edge_index, rows.colored, plain, num_edges, read, answer)

    @staticmethod
    def of_graph(graph: HeteroIdentityGraph) -> TypedPlan:
        """Of an identity graph that was built before, or of a batch of them."""
        reads = graph.read_type if isinstance(graph.read_type, list) else [graph.read_type]
        if len(set(reads)) != 1:
            raise ValueError(f"the graphs of the batch read nodes of the types {sorted(set(reads))}, expected one.")
        return TypedPlan(
            {kind: graph[kind].node for kind in graph.node_types},
            {kind: graph[kind].edge for kind in graph.edge_types},
            {kind: graph[kind].edge_index for kind in graph.edge_types},
            {kind: graph[kind].colored for kind in graph.node_types},
            {kind: graph[kind].plain_row for kind in graph.node_types},
            {kind: graph[kind].plain_edge.numel() for kind in graph.edge_types},
            reads[0],
            graph.query_row,
        )

    @staticmethod
    def of_colors(call: HeteroCall, colored: Mapping[str, Tensor], with_plain: bool) -> TypedPlan:
        """The graph itself with some rows colored; `with_plain`: behind a plain copy of it."""
        node, edge, edge_index, masks = {}, {}, {}, {}
        plain = {kind: torch.arange(size, device=call.device) for kind, size in call.num_nodes.items()}
        for kind, nodes in plain.items():
            none = torch.zeros_like(nodes, dtype=torch.bool)
            mask = colored.get(kind, none)
            node[kind] = torch.cat([nodes, nodes]) if with_plain else nodes
            masks[kind] = torch.cat([none, mask]) if with_plain else mask
        for kind, edges in call.edge_index.items():
            every = torch.arange(edges.size(1), device=call.device)
            shift = edges.new_tensor([[call.num_nodes[kind[0]]], [call.num_nodes[kind[2]]]])
            edge[kind] = torch.cat([every, every]) if with_plain else every
            edge_index[kind] = torch.cat([edges, edges + shift], dim=1) if with_plain else edges
        num_edges = {kind: edges.size(1) for kind, edges in call.edge_index.items()}
        return TypedPlan(node, edge, edge_index, masks, plain, num_edges, "", torch.empty(0, dtype=torch.long))

    def original(self, call: HeteroCall) -> HeteroCall:
        """The call on the original graph, where its arguments may have a row for each row of the identity graph."""

        def node(kind: str, values: Tensor) -> Tensor:
            plain = self.plain_row[kind]
            return values if values.size(0) == plain.numel() else values.index_select(0, plain)

        edges: dict[EdgeType, Tensor] = {}
        places: dict[EdgeType, Tensor] = {}
        for kind, index in self.edge_index.items():
            sources, targets = (self.node[end].index_select(0, row) for end, row in zip(kind[::2], index, strict=True))
            is_plain = torch.zeros(self.node[kind[2]].numel(), dtype=torch.bool, device=index.device)
            is_plain[self.plain_row[kind[2]]] = True
            places[kind] = is_plain.index_select(0, index[1]).nonzero().flatten()
            order = torch.argsort(self.edge[kind].index_select(0, places[kind]))
            places[kind] = places[kind].index_select(0, order)
            edges[kind] = torch.stack([sources, targets]).index_select(1, places[kind])

        def edge(kind: EdgeType, name: str, values: Tensor) -> Tensor:
            if name == "edge_index":
                return edges[kind]
            return values if values.size(0) == self.num_edges[kind] else values.index_select(0, places[kind])

        num_nodes = {kind: plain.numel() for kind, plain in self.plain_row.items()}
        return replace(call.map(node, edge), num_nodes=num_nodes, edge_index=edges)

    def lift(self, call: HeteroCall) -> HeteroCall:
        """The arguments of a call for these rows and edges; those that have a row for each already are taken so."""

        def node(kind: str, values: Tensor) -> Tensor:
            return _lifted(values, self.node[kind], self.plain_row[kind].numel(), f"the rows of {kind!r}")

        def edge(kind: EdgeType, name: str, values: Tensor) -> Tensor:
            if name == "edge_index":
                return self.edge_index[kind].clone()  # by whose memory the layers find the colors
            return _lifted(values, self.edge[kind], self.num_edges[kind], f"the edges of {kind}")

        return call.map(node, edge)


def _lifted(values: Tensor, index: Tensor, num_plain: int, what: str) -> Tensor:
    if values.dim() == 0 or values.size(0) not in (num_plain, index.numel()):
        raise ValueError(
            f"an argument for {what} has shape {list(values.shape)}, expected {num_plain} rows: one each. Arguments "
            "that are the same for all rows must not be in a dictionary by type."
        )
    return values.index_select(0, index) if values.size(0) == num_plain else values


def _first(named: Mapping[str, Any], names: tuple[str, ...], args: tuple[Any, ...], place: int) -> Any:
    for name in names:
        if name in named:
            return named[name]
    return args[place] if len(args) > place else None
