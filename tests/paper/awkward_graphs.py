"""Graphs on which a statement about walks can go wrong, built with networkx so that it can be asked about them."""

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data


def _graph(kind: type, num_nodes: int, edges: list[tuple[int, int]]) -> nx.Graph:
    graph = kind()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edges)
    return graph


def _random_multigraph(num_nodes: int, num_edges: int) -> nx.MultiDiGraph:
    ends = np.random.default_rng(0).integers(num_nodes, size=(num_edges, 2))
    return _graph(nx.MultiDiGraph, num_nodes, ends.tolist())


SIMPLE = {
    "one node": nx.empty_graph(1),
    "no edges": nx.empty_graph(4),
    "one edge": nx.path_graph(2),
    "triangle": nx.complete_graph(3),
    "two triangles": nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)),
    "hexagon": nx.cycle_graph(6),
    "path": nx.path_graph(7),
    "star": nx.star_graph(6),
    "complete": nx.complete_graph(6),
    "bipartite": nx.complete_bipartite_graph(2, 4),
    "Petersen": nx.petersen_graph(),
    "barbell": nx.barbell_graph(4, 2),
    "tree": nx.balanced_tree(2, 3),
    "isolated nodes": _graph(nx.Graph, 6, [(1, 4), (4, 2), (2, 1)]),
    "scale-free": nx.powerlaw_cluster_graph(24, 2, 0.5, seed=0),
    "small world": nx.watts_strogatz_graph(24, 4, 0.2, seed=0),
    "sparse, disconnected": nx.gnp_random_graph(30, 0.06, seed=0),
}

AWKWARD = SIMPLE | {
    "a lone self-loop": _graph(nx.DiGraph, 1, [(0, 0)]),
    "self-loops": _graph(nx.Graph, 5, [(0, 0), (0, 1), (1, 2), (2, 2), (2, 3), (4, 4)]),
    "doubled edges": _graph(nx.MultiDiGraph, 3, [(0, 1), (0, 1), (1, 0), (1, 2), (2, 1), (2, 1), (0, 0), (0, 0)]),
    "one directed edge": _graph(nx.DiGraph, 2, [(1, 0)]),
    "directed cycle": nx.cycle_graph(5, create_using=nx.DiGraph),
    "directed path": nx.path_graph(6, create_using=nx.DiGraph),
    "transitive tournament": _graph(nx.DiGraph, 6, [(u, v) for v in range(6) for u in range(v)]),
    "arrows into a hub": _graph(nx.DiGraph, 5, [(leaf, 0) for leaf in range(1, 5)]),
    "arrows out of a hub": _graph(nx.DiGraph, 5, [(0, leaf) for leaf in range(1, 5)]),
    "random, directed": nx.gnp_random_graph(16, 0.15, seed=0, directed=True),
    "random, doubled edges and self-loops": _random_multigraph(12, 40),
}


def as_data(graph: nx.Graph) -> Data:
    """Every edge of an undirected graph in both directions, the edges in no order, and x = [1] in float64."""
    edges = torch.tensor(list(graph.edges()), dtype=torch.long).view(-1, 2)
    if not graph.is_directed():
        edges = torch.cat([edges, edges[edges[:, 0] != edges[:, 1]].flip(1)])
    edges = edges[torch.randperm(len(edges), generator=torch.Generator().manual_seed(0))]
    return Data(x=torch.ones(len(graph), 1, dtype=torch.float64), edge_index=edges.t().contiguous())


def walks(graph: nx.Graph, length: int) -> torch.Tensor:
    """The integers `[s, t, j - 1]`: how many walks of j = 1, ..., `length` steps lead from s to t. An edge that is
    there twice counts twice."""
    adjacency = torch.from_numpy(nx.to_numpy_array(graph, nodelist=range(len(graph)), dtype=np.int64))
    powers = [adjacency]
    while len(powers) < length:
        powers.append(powers[-1] @ adjacency)
    return torch.stack(powers, dim=-1)


def every_pair(num_nodes: int) -> torch.Tensor:
    """All pairs (u, v), v by v: `[2, num_nodes ** 2]`."""
    return torch.cartesian_prod(torch.arange(num_nodes), torch.arange(num_nodes)).t().flip(0)
