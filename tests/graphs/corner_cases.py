"""Graphs that catch mistakes: empty, a single node, isolated nodes, self-loops, repeated and one-way edges."""

import networkx as nx
import torch
from hypothesis import strategies as st
from torch_geometric.data import Data


def graph(num_nodes: int, edges: list[tuple[int, int]]) -> Data:
    return Data(edge_index=torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous(), num_nodes=num_nodes)


CORNER_CASES = [
    graph(0, []),
    graph(1, []),
    graph(1, [(0, 0)]),
    graph(3, []),
    graph(2, [(0, 1)]),
    graph(4, [(0, 1), (1, 0), (0, 1), (1, 2), (2, 0), (2, 2)]),
    graph(7, [(0, 1), (1, 2), (2, 0), (4, 5), (5, 4), (5, 6)]),
    graph(5, [(4, 3), (3, 2), (2, 1), (1, 0)]),
]


@st.composite
def any_graph(draw: st.DrawFn, max_nodes: int = 8) -> Data:
    """Any directed multigraph with self-loops, often with both directions of its edges."""
    num_nodes = draw(st.integers(0, max_nodes))
    if num_nodes == 0:
        return graph(0, [])
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    if draw(st.booleans()):
        edges += [(v, u) for u, v in edges]
    return graph(num_nodes, edges)


def as_networkx(data: Data, directed: bool = False) -> nx.Graph:
    """The simple graph, without self-loops."""
    result = nx.DiGraph() if directed else nx.Graph()
    result.add_nodes_from(range(data.num_nodes or 0))
    result.add_edges_from((u, v) for u, v in data.edge_index.t().tolist() if u != v)
    return result
