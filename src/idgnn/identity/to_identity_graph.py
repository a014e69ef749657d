"""The identity graph as a PyG transform."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform

from idgnn.choices import SecondNodesName, TwoColorOptions, check_num_colors
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.checks import check_graph, check_num_layers, edges_of
from idgnn.identity.identity_graph import IdentityGraph, identity_graph, identity_graph_of
from idgnn.identity.queries import is_triples
from idgnn.identity.second_nodes import SecondNodes


class ToIdentityGraph(BaseTransform):
    """:func:`identity_graph` as a PyG transform.

    Args:
        num_layers: The number of rounds of message passing, :math:`K`.
        queries: The name of the attribute that holds the queries of a graph, for example `"edge_label_index"`;
            `None` embeds every node. Of a `HeteroData` it may be a node type, all of whose nodes are embedded.
        colors: With 2, nodes are read with each of their second nodes, and pairs with both ends colored, as
            :class:`idgnn.IDGNN` does with the same options. `pooled_into` of the result says which answers are pooled
            into one embedding. Queries that are triples have two colors as they are.
        second: The second nodes of a node: `"neighbors"`, `"ball"` or `"all"`.
        radius: The radius of the ball.
        with_self: Whether a node is read under the first color alone besides.
        directed: Whether (u, v) and (v, u) are different pairs.

    Example:
        >>> import torch
        >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> graph = ToIdentityGraph(num_layers=3, colors=2)(path)
        >>> graph.pooled_into.tolist()  # the node in the middle has two neighbors, the others have one
        [0, 1, 1, 2]
    """

    def __init__(
        self,
        num_layers: int,
        queries: str | None = None,
        *,
        colors: int = 1,
        second: SecondNodesName = TwoColorOptions.second,
        radius: int = TwoColorOptions.radius,
        with_self: bool = TwoColorOptions.with_self,
        directed: bool = TwoColorOptions.directed,
    ) -> None:
        check_num_layers(num_layers)
        if queries is not None and not isinstance(queries, str):
            raise ValueError(
                f"queries is a {type(queries).__name__}, expected a text: the name of the attribute of a graph that "
                "holds its queries. Set them as an attribute (data.pairs = ...) and give its name (queries='pairs'), "
                "or call identity_graph(data, num_layers, queries)."
            )
        check_num_colors(colors)
        TwoColorOptions(second, radius, with_self=with_self, directed=directed).check_used(colors)
        second_nodes = SecondNodes(second, radius, with_self, directed)
        self.num_layers = num_layers
        self.queries = queries
        self.second_nodes = second_nodes if colors == 2 else None

    def forward(self, data: Any) -> Any:
        """Builds the identity graph of `data`."""
        if self.second_nodes is None:
            return identity_graph(data, self.num_layers, self._queries(data))
        if isinstance(data, HeteroData):
            raise ValueError("colors=2 is for graphs of one node type, but a HeteroData was given. Use colors=1.")
        return _with_second_nodes(data, self.num_layers, self._queries(data), self.second_nodes)

    def _queries(self, data: Any) -> Any:
        typed = isinstance(data, HeteroData)
        if self.queries is None or (typed and self.queries in data.node_types):
            return self.queries
        if self.queries not in data:
            kinds = f" and the node types {data.node_types}" if typed else ""
            raise ValueError(
                f"the graph has no attribute {self.queries!r} to take the queries from; it has {sorted(data.keys())}"
                f"{kinds}. Set it before, or leave `queries` out to embed every node."
            )
        return data[self.queries]

    def __repr__(self) -> str:
        colors = "" if self.second_nodes is None else f", colors=2, {self.second_nodes.options}"
        return f"{type(self).__name__}(num_layers={self.num_layers}, queries={self.queries!r}{colors})"


def _with_second_nodes(data: Data, num_layers: int, queries: Tensor | None, second: SecondNodes) -> IdentityGraph:
    """The identity graph of the triples that nodes or pairs are read by, or of those that are given."""
    if is_triples(queries):
        return identity_graph(data, num_layers, queries)
    indexed = IndexedGraph(edges_of(data), check_graph(data))
    reading = second.read(indexed, queries)
    # Second nodes that are too far away are no mistake of the user.
    told = second.pair_options if queries is not None and queries.dim() == 2 else second.node_options
    return identity_graph_of(data, num_layers, reading.queries, False, reading.owner, told)
