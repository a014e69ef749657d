"""Small graphs with one-hot labels, awkward ones among them, and what every peer is compared by."""

import networkx as nx
import torch
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx, to_undirected

LABELS = 3


def graph_of(network: nx.Graph, seed: int | None = None) -> Data:
    """With random labels, or all the same."""
    size = network.number_of_nodes()
    label = torch.zeros(size, dtype=torch.long)
    if seed is not None:
        label = torch.randint(LABELS, (size,), generator=torch.Generator().manual_seed(seed))
    edge_index = from_networkx(nx.convert_node_labels_to_integers(network)).edge_index
    edge_index = edge_index if network.number_of_edges() else torch.zeros(2, 0, dtype=torch.long)
    return Data(x=torch.eye(LABELS)[label], edge_index=edge_index, num_nodes=size, y=torch.tensor([size % 2]))


def awkward() -> list[Data]:
    """One node, no edges, two components, an isolated node, a hub, an edge that is listed twice, molecules."""
    twice = graph_of(nx.path_graph(4), 1)
    twice.edge_index = torch.cat([twice.edge_index, twice.edge_index[:, :2]], dim=1)
    lonely = nx.cycle_graph(5)
    lonely.add_node(5)
    return [
        graph_of(nx.empty_graph(1), 0),
        graph_of(nx.empty_graph(3), 1),
        graph_of(nx.disjoint_union(nx.complete_graph(3), nx.path_graph(4)), 2),
        graph_of(lonely, 3),
        graph_of(nx.star_graph(6), 4),
        twice,
        graph_of(nx.petersen_graph(), 5),
        graph_of(nx.gnp_random_graph(9, 0.4, seed=6), 6),
        graph_of(nx.gnp_random_graph(7, 0.3, seed=7), 7),
    ]


def permuted(graph: Data, seed: int = 0) -> Data:
    """The same graph with its nodes and edges in another order."""
    size = graph.num_nodes
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    place = torch.empty_like(order)
    place[order] = torch.arange(size)
    edge_index = place[graph.edge_index]
    shuffled = edge_index[:, torch.randperm(edge_index.size(1), generator=torch.Generator().manual_seed(seed + 1))]
    return Data(x=graph.x[order], edge_index=shuffled, num_nodes=size, y=graph.y)


def hexagon_and_triangles() -> list[Data]:
    """Equal for 1-WL."""
    return [graph_of(nx.cycle_graph(6)), graph_of(nx.disjoint_union(nx.complete_graph(3), nx.complete_graph(3)))]


def rook_and_shrikhande() -> list[Data]:
    """Equal for 3-WL: strongly regular with the parameters (16, 6, 2, 2)."""
    rook = nx.line_graph(nx.complete_bipartite_graph(4, 4))
    shrikhande = nx.Graph()
    for i in range(4):
        for j in range(4):
            for a, b in ((1, 0), (0, 1), (1, 1)):
                shrikhande.add_edge((i, j), ((i + a) % 4, (j + b) % 4))
    assert not nx.is_isomorphic(rook, shrikhande)
    return [graph_of(rook), graph_of(shrikhande)]


def decalin_and_bicyclopentyl() -> list[Data]:
    """Two rings of six that share an edge, and two rings of five with an edge between them: equal for 1-WL."""
    decalin = nx.cycle_graph(10)
    decalin.add_edge(0, 5)
    rings = nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(5))
    rings.add_edge(0, 5)
    return [graph_of(decalin), graph_of(rings)]


def directed_once(edges: list[tuple[int, int]], size: int) -> Data:
    """A graph from undirected edges."""
    return Data(x=torch.eye(LABELS)[[0] * size], edge_index=to_undirected(torch.tensor(edges).t()), num_nodes=size)
