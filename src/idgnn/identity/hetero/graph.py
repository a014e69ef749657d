r"""The identity graph of a heterogeneous graph.

The argument of :mod:`idgnn.identity.identity_graph` is about in-neighborhoods, so it holds edge type by edge type: the
identity graph is built of all types as one graph, and split by type again. The rows of node type t are its nodes, and
behind them the rows :math:`(u|v)` with u of type t. The colored ones are :math:`(v|v)`, so they are of the type of v.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.checks import check_num_layers
from idgnn.identity.cone import cones
from idgnn.identity.cost import EDGE_BYTES, ROW_BYTES, IdentityCost, TooLargeError, free_memory, readable
from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec, as_typed_queries
from idgnn.identity.hetero.types import EdgeType, Split, TypedGraph
from idgnn.identity.identity_graph import IdentityGraph, identity_graph

_ROW_KEYS, _EDGE_KEYS = ("x", "batch"), ("edge_attr", "edge_weight", "edge_type")


class HeteroIdentityGraph(HeteroData):
    """A PyG `HeteroData` whose nodes are the rows of an identity graph. It batches, moves and saves like any other.

    A node type holds `x` of its rows, `colored`, `node`, `arrival` and `plain_row`, an edge type `edge_index`,
    `edge_attr`, `edge_weight`, `edge` and `plain_edge`: see :class:`idgnn.IdentityGraph`. The graph itself holds

    * `query_row` `[queries]`: the row, of node type `read_type`, that answers each query;
    * `read_type` and `root_type`: the node types that are read and colored.

    Every other attribute of the original graph (`y`, masks, times, ...) is carried over as it is.
    """

    if TYPE_CHECKING:  # PyG keeps attributes in a store, where no type checker finds them
        query_row: Tensor
        read_type: str
        root_type: str
        num_layers: int | Tensor

    def __inc__(self, key: str, value: Any, store: Any = None, *args: Any, **kwargs: Any) -> Any:
        """What ids grow by when graphs become a batch: row ids by rows, ids of nodes and edges by the original's."""
        if key == "query_row":
            return self[self.read_type].num_nodes
        if key == "plain_row":
            return store.num_nodes
        if key == "node":
            return store.plain_row.numel()
        if key == "plain_edge":
            return store.edge_index.size(1)
        if key == "edge":
            return store.plain_edge.numel()
        return super().__inc__(key, value, store, *args, **kwargs)


def hetero_identity_graph(data: HeteroData, num_layers: int, queries: TypedQuerySpec) -> HeteroIdentityGraph:
    """:func:`idgnn.identity_graph` of a graph of several types."""
    check_num_layers(num_layers)
    typed = TypedGraph.of_data(data)
    parsed = typed_queries(typed, queries, num_layers)
    graph = HeteroIdentityGraph()
    rows = TypedRows.of(typed, parsed, num_layers)
    _check_features_fit(data, rows)
    for name, store in zip(data.node_types, data.node_stores, strict=True):
        target = graph[name]
        target.colored, target.node, target.arrival = rows.colored[name], rows.node[name], rows.arrival[name]
        target.plain_row = torch.arange(typed.size[name], device=target.node.device)
        _carry(store, target, _ROW_KEYS, target.node, f"the node type {name!r}")
        target.num_nodes = target.node.numel()
    for edge_type, store in zip(data.edge_types, data.edge_stores, strict=True):
        target = graph[edge_type]
        target.edge_index, target.edge = rows.edge_index[edge_type], rows.edge[edge_type]
        target.plain_edge = torch.arange(store.edge_index.size(1), device=target.edge.device)
        _carry(store, target, _EDGE_KEYS, target.edge, f"the edge type {edge_type}")
    _carry(data.stores[0], graph, (), rows.query_row, "the graph")
    graph.query_row, graph.num_layers = rows.query_row, num_layers
    graph.read_type, graph.root_type = parsed.read, parsed.root
    return graph


class TypedRows:
    """The rows and edges of an identity graph, type by type, without features."""

    def __init__(self, typed: TypedGraph, graph: IdentityGraph, queries: TypedQueries) -> None:
        schema = typed.schema
        rows = Split.of(typed.node_type.index_select(0, graph.node), len(schema.node_types))
        edges = Split.of(typed.edge_type.index_select(0, graph.edge), len(schema.edge_types))
        self.node: dict[str, Tensor] = {}  # [rows of the type]
        self.colored: dict[str, Tensor] = {}
        self.arrival: dict[str, Tensor] = {}
        self.edge_index: dict[EdgeType, Tensor] = {}  # [2, edges of the type]
        self.edge: dict[EdgeType, Tensor] = {}
        for number, name in enumerate(schema.node_types):
            mine = rows.of_type(number)
            self.node[name] = graph.node.index_select(0, mine) - typed.first[name]
            self.colored[name], self.arrival[name] = graph.colored[mine], graph.arrival[mine]
        for number, edge_type in enumerate(schema.edge_types):
            mine = edges.of_type(number)
            ends = graph.edge_index.index_select(1, mine)
            self.edge_index[edge_type] = rows.place.index_select(0, ends.flatten()).view(2, -1)
            self.edge[edge_type] = graph.edge.index_select(0, mine) - typed.first_edges[edge_type]
        self.query_row = rows.place.index_select(0, graph.query_row)  # of the type that is read
        self.queries = queries

    @staticmethod
    def of(typed: TypedGraph, queries: TypedQueries, num_layers: int) -> TypedRows:
        """Builds the identity graph of all types as one."""
        joined = queries.joined(typed)
        nodes = joined.node if queries.own else torch.stack([joined.node, joined.color])
        whole = Data(edge_index=typed.edge_index, num_nodes=typed.total)
        # A type without nodes has no queries.
        graph = _empty(whole, num_layers) if queries.node.numel() == 0 else identity_graph(whole, num_layers, nodes)
        return TypedRows(typed, graph, queries)


def _empty(whole: Data, num_layers: int) -> IdentityGraph:
    """The identity graph of no queries: the graph itself."""
    assert whole.edge_index is not None
    node = torch.arange(whole.num_nodes or 0, device=whole.edge_index.device)
    graph = IdentityGraph(edge_index=whole.edge_index, num_nodes=node.numel())
    graph.node = graph.plain_row = node
    graph.edge = graph.plain_edge = torch.arange(whole.edge_index.size(1), device=node.device)
    graph.colored, graph.arrival = torch.zeros_like(node, dtype=torch.bool), torch.zeros_like(node)
    graph.query_row, graph.num_layers = node[:0], num_layers
    return graph


def typed_queries(typed: TypedGraph, queries: Any, num_layers: int) -> TypedQueries:
    """Queries of a graph, refused where the schema keeps the color from arriving in so many rounds."""
    parsed = as_typed_queries(queries, typed.schema, typed.size, typed.edge_index.device)
    typed.schema.check_reach(parsed.read, parsed.root, num_layers)
    return parsed


def hetero_identity_cost(data: HeteroData, num_layers: int, queries: TypedQuerySpec) -> IdentityCost:
    """:func:`idgnn.identity_cost` of a graph of several types."""
    check_num_layers(num_layers)
    typed = TypedGraph.of_data(data)
    parsed = typed_queries(typed, queries, num_layers).joined(typed)
    graph = IndexedGraph(typed.edge_index, typed.total)
    per_row = [ROW_BYTES + _bytes(store, _ROW_KEYS) for store in data.node_stores]
    per_edge = [EDGE_BYTES + _bytes(store, _EDGE_KEYS) for store in data.edge_stores]
    each = typed.node_type.new_tensor(per_row or [0]).index_select(0, typed.node_type)
    of_edges = typed.edge_type.new_tensor(per_edge or [0]).index_select(0, typed.edge_type)
    into = each.index_add(0, typed.edge_index[1], of_edges)  # [nodes] bytes of a row and the edges into it
    rows, edges, size = typed.total, typed.edge_index.size(1), int(into.sum())
    for cone in cones(graph, num_layers, parsed):
        rows += cone.key.numel()
        edges += int(graph.into.degree_of(cone.node).sum())
        size += int(into.index_select(0, cone.node).sum())
    return IdentityCost(rows, edges, size)


def _check_features_fit(data: HeteroData, rows: TypedRows) -> None:
    """Refuses features and edge attributes of all rows that would not fit into the memory that is free."""
    needed = sum(rows.node[name].numel() * _bytes(data[name], _ROW_KEYS) for name in data.node_types)
    needed += sum(rows.edge[kind].numel() * _bytes(data[kind], _EDGE_KEYS) for kind in data.edge_types)
    free = free_memory(rows.query_row.device)
    if needed > free:
        raise TooLargeError(
            f"the features of the identity graph take {readable(needed)}, but {readable(free)} are free. Use fewer "
            "layers, or query some of the nodes at a time."
        )


def _bytes(store: Any, keys: tuple[str, ...]) -> int:
    """Of what one row or edge carries."""
    carried = (value for key in keys if isinstance(value := store.get(key), Tensor))
    return sum(value[:1].numel() * value.element_size() for value in carried)


def _carry(source: Any, target: Any, keys: tuple[str, ...], index: Tensor, what: str) -> None:
    """Features follow the rows, edge attributes the edges; all else is taken as it is. Changes `target`."""
    for key, value in source.items():
        if value is None or key in ("edge_index", "num_nodes", "ptr"):
            continue
        if key in target:
            raise ValueError(
                f"{what} has an attribute {key!r}, and so has every identity graph. Rename yours, for example to "
                f"{'my_' + key!r}."
            )
        target[key] = value[index] if key in keys else value
