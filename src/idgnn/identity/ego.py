r"""Ego networks: Algorithm 1 of the paper, literally, with one copy of the K-hop neighborhood per query.

This is what the identity graph is compared with, in the tests and in the benchmarks. The answer to a query at `r`
after `K` rounds depends on the nodes that reach `r` in `K` message steps, so that is its ego network; the colored
node is marked in it, if it is there at all.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import IndexedGraph, contains
from idgnn.identity.checks import check_graph, check_num_layers, edges_of
from idgnn.identity.cone import ball
from idgnn.identity.queries import Queries, as_queries
from idgnn.identity.row_graph import RowGraph


def ego_networks(data: Data, num_layers: int, queries: Tensor | None = None) -> RowGraph:
    """One ego network of `num_layers` hops per query, side by side in one graph.

    Boundary nodes have lost in-neighbors, so degrees must be taken from the original graph.
    """
    num_nodes = check_graph(data)
    check_num_layers(num_layers)
    return ego_networks_of(data, num_layers, as_queries(queries, num_nodes, edges_of(data).device))


def ego_networks_of(data: Data, num_layers: int, queries: Queries) -> RowGraph:
    """:func:`ego_networks` of a graph that was checked."""
    edge_index, num_nodes = edges_of(data), data.num_nodes or 0
    into = IndexedGraph(edge_index, num_nodes).into
    root = torch.arange(queries.node.numel(), device=edge_index.device) * num_nodes + queries.node
    key, _ = ball(into, root, num_layers, num_nodes)
    ego, node = key // num_nodes, key % num_nodes
    target, position = into.expand(node)
    source, there = contains(key, ego[target] * num_nodes + into.neighbor[position])
    colored = node == queries.color[ego]
    if queries.second is not None:
        colored = colored.to(torch.int8) + (node == queries.second[ego]).to(torch.int8) * 2
    return RowGraph(
        edge_index=torch.stack([source[there], target[there]]),
        edge=into.edge[position[there]],
        node=node,
        colored=colored,
        query_row=torch.searchsorted(key, root),
    )
