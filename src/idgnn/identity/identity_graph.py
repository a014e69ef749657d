r"""The identity graph: ID-GNN-Full as an ordinary GNN on an ordinary graph.

Algorithm 1 of the paper copies the K-hop ego network of every node and runs K rounds of heterogeneous message passing
(Eq. 3) on each copy. The identity graph holds every state of that computation that differs from the plain GNN's and
matters for the answer, and each of them once: its rows are the plain nodes, and a row :math:`(u|v)` for each node `u`
in the cone of each colored node `v` (:mod:`idgnn.identity.cone`). Row :math:`(u|v)` receives an edge from
:math:`(s|v)` for every in-neighbor `s` of `u` that has such a row, and from the plain row of `s` otherwise. So every
row sees a copy of its node's whole in-neighborhood, and any K-layer message-passing network may run on this graph
unchanged; row :math:`(r|v)` then holds exactly :math:`\mathbf{h}_{r|v}^{(K)}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.batching import carry_attributes, regroup
from idgnn.identity.checks import check_graph, check_num_layers, edges_of
from idgnn.identity.cone import CHUNK, Cone
from idgnn.identity.cost import check_identity_graph_fits
from idgnn.identity.queries import Queries, as_queries
from idgnn.identity.two_colors import all_rows
from idgnn.identity.unreached import UnreachedColorWarning, warn_unreached

if TYPE_CHECKING:
    from idgnn.identity.hetero.graph import HeteroIdentityGraph
    from idgnn.identity.hetero.queries import TypedQuerySpec

__all__ = ["IdentityGraph", "UnreachedColorWarning", "identity_graph"]


class IdentityGraph(Data):
    """A PyG `Data` whose nodes are the rows of an identity graph. It batches, moves and saves like any other.

    Beside `x`, `edge_index`, `edge_attr` and `edge_weight` of the rows it holds

    * `colored` `[rows]`: whether the row is :math:`(v|v)`, whose messages pass through the second weights; where there
      are two colors, the color of the row: 0, 1 or 2 (`torch.int8`);
    * `node` `[rows]`: the node of the original graph that the row is a copy of;
    * `edge` `[edges]`: the edge of the original graph that the edge is a copy of;
    * `arrival` `[rows]`: the round after which the row's state can differ from the plain one, 0 for plain rows; of rows
      under two colors, after which it can differ from that of row `before`, which they alone have;
    * `plain_row` `[nodes]` and `plain_edge` `[original edges]`: the rows and edges that are the original graph itself;
    * `query_row` `[queries]`: the row that answers each query;
    * `pooled_into` `[queries]`: if :class:`ToIdentityGraph` has listed second nodes, the node or pair, counted from 0,
      whose embedding is a pool over the answers of these queries, and `pooled_by`, the options that it was told.

    Every other attribute of the original graph (`y`, masks, ...) is carried over as it is.
    """

    if TYPE_CHECKING:  # PyG keeps attributes in a store, where no type checker finds them
        edge_index: Tensor
        colored: Tensor
        node: Tensor
        edge: Tensor
        arrival: Tensor
        before: Tensor
        plain_row: Tensor
        plain_edge: Tensor
        query_row: Tensor
        pooled_into: Tensor
        pooled_by: str | list[str]  # in a batch, of each graph
        num_nodes: int
        num_layers: int | Tensor
        batch: Tensor

    @property
    def query_batch(self) -> Tensor:
        """In a batch, the graph of each embedding that a model returns: what they are pooled by for each graph."""
        rows = self.query_row
        if "pooled_into" in self:
            rows = rows[self.pooled_into.diff(prepend=self.pooled_into.new_tensor([-1])) > 0]
        return self.batch[rows]

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """What ids grow by when graphs become a batch: row ids by rows, ids of nodes and edges by the original's."""
        if key in ("query_row", "plain_row", "before"):
            return self.num_nodes
        if key == "plain_edge":
            return self.num_edges
        if key == "pooled_into":
            return num_answers(value)
        if key == "edge":
            return self.plain_edge.numel()
        if key in ("node", "face") or ("index" in key and key != "edge_index"):
            return self.plain_row.numel()
        return super().__inc__(key, value, *args, **kwargs)


@overload
def identity_graph(data: Data, num_layers: int, queries: Tensor | None = None) -> IdentityGraph: ...
@overload
def identity_graph(
    data: HeteroData,
    num_layers: int,
    queries: TypedQuerySpec,
    *,
    query_time: Tensor | float | None = None,
    time_attr: str = "time",
    strict: bool = False,
) -> HeteroIdentityGraph: ...
def identity_graph(
    data: Data | HeteroData,
    num_layers: int,
    queries: Any = None,
    *,
    query_time: Tensor | float | None = None,
    time_attr: str = "time",
    strict: bool = False,
) -> IdentityGraph | HeteroIdentityGraph:
    r"""The graph on which a plain `num_layers`-round GNN computes ID-GNN-Full exactly.

    Args:
        data: A graph, or a batch of graphs (the result is then the batch of their identity graphs).
        num_layers: The number of rounds of message passing, :math:`K`.
        queries: `None` to embed every node under its own color, node ids `[num_queries]` to embed those alone, or
            pairs `[2, num_queries]` for the conditional embeddings :math:`\mathbf{h}_{u|v}` with `u = queries[0]` read
            and `v = queries[1]` colored. Triples `[3, num_queries]` read `queries[0]` when `queries[1]` has the first
            color and `queries[2]` the second (:mod:`idgnn.identity.two_colors`); a node that is given both has the
            first. Of a `HeteroData`: a node type `"driver"`, some of its nodes
            `("driver", ids)`, or pairs `(("circuit", r), ("driver", v))` of nodes that are read and colored.
        query_time: Of a `HeteroData` with times, the time of each query `[num_queries]`, which then sees what was there
            by that time (:func:`idgnn.snapshot`).
        time_attr: The attribute that holds the times of nodes and edges.
        strict: Whether a query sees only what was there before its time.

    Example:
        >>> triangle = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]]))
        >>> graph = identity_graph(triangle, num_layers=3)
        >>> graph.num_nodes, graph.num_edges  # 3 plain rows and 3 x 3 rows of their own; two edges into each
        (12, 24)
        >>> graph.query_row.tolist()
        [3, 7, 11]
        >>> graph = identity_graph(triangle, num_layers=3, queries=torch.tensor([[0], [0], [1]]))  # two colors
        >>> graph.colored.tolist()  # three plain rows, one under each color alone, and three under both
        [0, 0, 0, 1, 2, 1, 2, 0]
    """
    if isinstance(data, HeteroData):
        from idgnn.identity.hetero.graph import hetero_identity_graph  # which is built on this
        from idgnn.identity.hetero.time import timed_identity_graph

        if query_time is not None:
            return timed_identity_graph(data, num_layers, queries, query_time, time_attr, strict)
        return hetero_identity_graph(data, num_layers, queries)
    if query_time is not None:
        raise ValueError("query_time is for a HeteroData whose nodes or edges have times. Leave it out.")
    num_nodes = check_graph(data)
    check_num_layers(num_layers)
    return identity_graph_of(data, num_layers, as_queries(queries, num_nodes, edges_of(data).device))


def identity_graph_of(
    data: Data,
    num_layers: int,
    queries: Queries,
    warn: bool = True,
    pooled_into: Tensor | None = None,
    pooled_by: str | None = None,
) -> IdentityGraph:
    """:func:`identity_graph` of a graph that was checked; `warn` says whether to warn of queries no color reaches."""
    edge_index = edges_of(data)
    num_nodes = data.num_nodes or 0
    indexed = IndexedGraph(edge_index, num_nodes)
    check_identity_graph_fits(data, indexed, num_layers, queries)
    cone = all_rows(indexed, num_layers, queries)
    plain = torch.arange(num_nodes, device=edge_index.device)

    graph = IdentityGraph()
    graph.edge_index, graph.edge = _edges(indexed, edge_index, cone)
    graph.node = torch.cat([plain, cone.node])
    graph.colored = torch.cat([torch.zeros_like(plain, dtype=cone.colored.dtype), cone.colored])
    graph.arrival = torch.cat([torch.zeros_like(plain), cone.arrival])
    if cone.before is not None:
        own = torch.where(cone.before < 0, cone.node, cone.before + num_nodes)
        graph.before = torch.cat([plain, own])
    graph.plain_row, graph.plain_edge = plain, torch.arange(edge_index.size(1), device=edge_index.device)
    graph.query_row = _answers(queries, cone, warn)
    if pooled_into is not None:
        graph.pooled_into = pooled_into
    if pooled_by is not None:
        graph.pooled_by = pooled_by
    graph.num_layers = num_layers
    carry_attributes(data, graph)
    return regroup(graph, data) if isinstance(data, Batch) else graph


def num_answers(pooled_into: Tensor) -> int:
    """The number of embeddings that answers `[queries]` are pooled into: each has some, and they are in order."""
    return int(pooled_into[-1]) + 1 if pooled_into.numel() else 0


def _edges(graph: IndexedGraph, edge_index: Tensor, cone: Cone) -> tuple[Tensor, Tensor]:
    """The edges of all rows, plain rows first: `[2, edges]`, and the original edge that each is a copy of `[edges]`."""
    num_nodes, into, key = graph.num_nodes, graph.into, cone.key
    degree = into.degree_of(cone.node)
    first = edge_index.size(1)
    rows = edge_index.new_empty(2, first + int(degree.sum()))
    edge = edge_index.new_empty(rows.size(1))
    rows[:, :first] = edge_index
    edge[:first] = torch.arange(first, device=edge.device)
    # Filled in by parts, so that what is worked on stays small beside the result.
    part = (degree.cumsum(0) // CHUNK).unique_consecutive(return_counts=True)[1].tolist()
    row = num_nodes
    for keys in key.split(part):
        owner, position = into.expand(keys % num_nodes)
        neighbor = into.neighbor.index_select(0, position)
        block = (keys - keys % num_nodes).index_select(0, owner)  # color * num_nodes
        own, there = cone.lookup(block + neighbor)
        last = first + owner.numel()
        torch.where(there, own + num_nodes, neighbor, out=rows[0, first:last])
        torch.add(owner, row, out=rows[1, first:last])
        torch.index_select(into.edge, 0, position, out=edge[first:last])
        first, row = last, row + keys.numel()
    return rows, edge


def _answers(queries: Queries, cone: Cone, warn: bool) -> Tensor:
    """The row of each query; where the color is too far away to be seen, that is the plain row."""
    position, there = cone.find(queries)
    if warn:
        warn_unreached(int((~there).sum()), there.numel(), cone.num_layers)
    return torch.where(there, position + cone.num_nodes, queries.node)
