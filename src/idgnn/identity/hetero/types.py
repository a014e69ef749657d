"""A heterogeneous graph as one graph: the nodes of all types numbered one after the other, and so the edges.

One step is one layer over all edge types, so that cones, schedules, identity graphs, costs and walk counts are those of
this one graph; what they find is split by type again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.identity.adjacency import inverse, pointers
from idgnn.identity.checks import check_edge_rows, check_features, check_rows

EdgeType = tuple[str, str, str]


@dataclass(frozen=True)
class Schema:
    """The node types and edge types of a graph."""

    node_types: tuple[str, ...]
    edge_types: tuple[EdgeType, ...]

    def route(self, source: str, target: str) -> list[str] | None:
        """The types on a shortest route of messages from one type to another, both ends included."""
        before: dict[str, str] = {source: source}
        waiting = deque([source])
        while waiting:
            here = waiting.popleft()
            if here == target:
                route = [here]
                while route[-1] != source:
                    route.append(before[route[-1]])
                return route[::-1]
            for start, _, end in self.edge_types:
                if start == here and end not in before:
                    before[end] = here
                    waiting.append(end)
        return None

    def steps_to(self, target: str) -> dict[str, int]:
        """The number of message steps from each type to a type, for those from which it is reached."""
        routes = {name: self.route(name, target) for name in self.node_types}
        return {name: len(route) - 1 for name, route in routes.items() if route is not None}

    def check_type(self, name: Any, what: str) -> None:
        """Refuses a node type that the graph does not have."""
        if name not in self.node_types:
            raise ValueError(
                f"{what} name the node type {name!r}, but the graph has {', '.join(map(repr, self.node_types))}."
            )

    def check_reach(self, read: str, color: str, num_layers: int) -> None:
        """Refuses to read a type at which the color of another one cannot arrive in so many rounds."""
        if read == color and not any(read in (source, target) for source, _, target in self.edge_types):
            raise ValueError(
                f"the node type {read!r} has no edges of any type, so that its color is never seen. Add edge types, or "
                "ask for another node type."
            )
        route = self.route(color, read)
        if route is None:
            raise ValueError(
                f"no route of edge types leads from {color!r} to {read!r}, so that its color never arrives there, "
                "whatever the number of layers. Add edge types, for example the reverse ones with "
                "torch_geometric.transforms.ToUndirected()."
            )
        if len(route) - 1 > num_layers:
            raise ValueError(
                f"{read!r} is {len(route) - 1} message steps from {color!r} in the schema ({' -> '.join(route)}), but "
                f"the number of layers is {num_layers}, so that no color arrives. Use at least {len(route) - 1} layers."
            )


@dataclass(frozen=True)
class TypedGraph:
    """All node types and edge types of a graph in one `edge_index`."""

    schema: Schema
    num_nodes: tuple[int, ...]  # of each node type
    num_edges: tuple[int, ...]  # of each edge type
    edge_index: Tensor  # [2, edges of all types] between nodes of all types

    @staticmethod
    def of(num_nodes: Mapping[str, int], edge_index: Mapping[EdgeType, Tensor], device: torch.device) -> TypedGraph:
        """From the number of nodes of each type and the edges of each type, which are checked."""
        schema = Schema(tuple(num_nodes), tuple(edge_index))
        first = dict(zip(num_nodes, _starts(num_nodes.values()), strict=True))
        parts = [torch.empty(2, 0, dtype=torch.long, device=device)]
        for edge_type, edges in edge_index.items():
            check_typed_edges(edge_type, edges, num_nodes)
            source, _, target = edge_type
            parts.append(edges.long() + edges.new_tensor([[first[source]], [first[target]]], dtype=torch.long))
        sizes = tuple(part.size(1) for part in parts[1:])
        return TypedGraph(schema, tuple(num_nodes.values()), sizes, torch.cat(parts, dim=1))

    @staticmethod
    def of_data(data: HeteroData) -> TypedGraph:
        """The types of a graph whose parts fit together."""
        sizes = check_hetero_graph(data)
        edges = {edge_type: data[edge_type].edge_index for edge_type in data.edge_types}
        tensors = (value for store in data.stores for value in store.values() if isinstance(value, Tensor))
        first = next(iter(edges.values()), None)
        device = next(tensors, torch.empty(0)).device if first is None else first.device
        return TypedGraph.of(sizes, edges, device)

    @property
    def total(self) -> int:
        """The number of nodes of all types."""
        return sum(self.num_nodes)

    @cached_property
    def first(self) -> dict[str, int]:
        """The number of the first node of each type."""
        return dict(zip(self.schema.node_types, _starts(self.num_nodes), strict=True))

    @cached_property
    def size(self) -> dict[str, int]:
        """The number of nodes of each type."""
        return dict(zip(self.schema.node_types, self.num_nodes, strict=True))

    @cached_property
    def node_type(self) -> Tensor:
        """The number of the type of each node `[nodes]`."""
        return _repeated(self.num_nodes, self.edge_index.device)

    @cached_property
    def edge_type(self) -> Tensor:
        """The number of the type of each edge `[edges]`."""
        return _repeated(self.num_edges, self.edge_index.device)

    @cached_property
    def first_edges(self) -> dict[EdgeType, int]:
        """The number of the first edge of each type."""
        return dict(zip(self.schema.edge_types, _starts(self.num_edges), strict=True))

    def number(self, name: str, ids: Tensor) -> Tensor:
        """Nodes of one type by their numbers among all."""
        return ids + self.first[name]


@dataclass(frozen=True)
class Split:
    """Things of several types, in any order, sorted by type: each keeps its place within its type."""

    order: Tensor  # [things] by type, then as they came
    ptr: list[int]  # [types + 1]
    place: Tensor  # [things] the position of each within its type

    @staticmethod
    def of(kind: Tensor, num_types: int) -> Split:
        """Sorts things by the number of their type."""
        ptr = pointers(kind, num_types)
        order = torch.argsort(kind, stable=True)
        return Split(order, ptr.tolist(), inverse(order) - ptr.index_select(0, kind))

    def of_type(self, number: int) -> Tensor:
        """The things of one type, in the order in which they came."""
        return self.order[self.ptr[number] : self.ptr[number + 1]]


def check_hetero_graph(data: HeteroData) -> dict[str, int]:
    """Refuses a graph whose parts do not fit together; returns the number of nodes of each type."""
    if not isinstance(data, HeteroData):
        raise ValueError(f"the graph is a {type(data).__name__}, expected a torch_geometric.data.HeteroData.")
    if "query_row" in data:
        raise ValueError("the graph is an identity graph already. Pass the graph that it was built from.")
    sizes: dict[str, int] = {}
    for name in data.node_types:
        store = data[name]
        if not any(key in ("num_nodes", "x", "tf", "pos", "batch") or "node" in key for key in store):
            raise ValueError(
                f"the node type {name!r} has neither x nor num_nodes, so that its nodes cannot be counted. Set "
                f"data[{name!r}].num_nodes."
            )
        if store.get("x") is not None:
            check_rows(store.x, f"x of {name!r}", "[num_nodes, num_features]")
        sizes[name] = int(store.num_nodes or 0)
        if isinstance(store.get("x"), Tensor):
            check_features(store.x, sizes[name], f"x of {name!r}")
    for edge_type in data.edge_types:
        store = data[edge_type]
        if not isinstance(store.get("edge_index"), Tensor):
            raise ValueError(
                f"the edge type {edge_type} has no edge_index, expected an integer tensor of shape [2, num_edges]."
            )
        check_typed_edges(edge_type, store.edge_index, sizes)
        for key in ("edge_attr", "edge_weight"):
            if store.get(key) is not None:
                check_edge_rows(store[key], store.edge_index.size(1), key)
    return sizes


def check_typed_edges(edge_type: Any, edges: Any, num_nodes: Mapping[str, int]) -> None:
    """Refuses edges of a type that is none, of node types that are not there, or of nodes that are not there."""
    if not isinstance(edge_type, tuple) or len(edge_type) != 3:
        raise ValueError(f"the edge type {edge_type!r} is no triple, expected (source type, relation, target type).")
    if not isinstance(edges, Tensor) or edges.dim() != 2 or edges.size(0) != 2 or edges.is_floating_point():
        given = f"{edges.dtype} {list(edges.shape)}" if isinstance(edges, Tensor) else type(edges).__name__
        raise ValueError(
            f"the edge_index of {edge_type} is {given}, expected an integer tensor of shape [2, num_edges]."
        )
    for row, name in ((0, edge_type[0]), (1, edge_type[2])):
        if name not in num_nodes:
            raise ValueError(
                f"the edge type {edge_type} names the node type {name!r}, but the graph has "
                f"{', '.join(map(repr, num_nodes)) or 'none'}."
            )
        if edges.size(1) == 0:
            continue
        low, high = int(edges[row].min()), int(edges[row].max())
        if low < 0 or high >= num_nodes[name]:
            raise ValueError(
                f"the edge_index of {edge_type} names node {low if low < 0 else high} of {name!r}, which has "
                f"{num_nodes[name]} nodes: expected ids from 0 to {num_nodes[name] - 1}."
            )


def _starts(sizes: Iterable[int]) -> list[int]:
    starts, total = [], 0
    for size in sizes:
        starts.append(total)
        total += size
    return starts


def _repeated(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    """0 as often as the first size says, then 1, and so on."""
    return torch.repeat_interleave(torch.tensor(sizes, dtype=torch.long, device=device), output_size=sum(sizes))
