"""What two colors tell apart, by exact refinement: each row is named after its color and what its neighbors are named.

No network and no rounding takes part, so that this is what every network of this kind can see at most.
"""

from collections import Counter

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx

from examples.strongly_regular import pairs_by_3_wl, rook_graph, shrikhande_graph
from idgnn import identity_graph

CYCLIC = [[(row + column) % 5 for column in range(5)] for row in range(5)]
OTHER = [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]]


def latin_square_graph(square: list[list[int]]) -> nx.Graph:
    """Cells are adjacent if they share their row, their column or their symbol: srg(25, 12, 5, 6) for 5 x 5."""
    size = len(square)
    cells = [(row, column, square[row][column]) for row in range(size) for column in range(size)]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(cells)))
    shared = ((i, j) for i, a in enumerate(cells) for j, b in enumerate(cells[:i]) if any(map(int.__eq__, a, b)))
    graph.add_edges_from(shared)
    return graph


FAMILIES = {
    "srg(16, 6, 2, 2)": (rook_graph(), shrikhande_graph(), (6, 2, 2)),
    "srg(25, 12, 5, 6)": (latin_square_graph(CYCLIC), latin_square_graph(OTHER), (12, 5, 6)),
}


def refined(graph: nx.Graph, num_layers: int, colors: int, names: dict) -> Counter:
    """How often each name stands at the nodes of a graph, after so many rounds: with two colors, for each node those of
    all its neighbors as second nodes together. `names` numbers what is seen, alike for all graphs."""
    edge_index = from_networkx(graph).edge_index
    data = Data(edge_index=edge_index, num_nodes=len(graph))
    node = edge_index[1] if colors == 2 else torch.arange(len(graph))
    rows = identity_graph(data, num_layers, torch.stack([node, node, edge_index[0]]) if colors == 2 else None)
    into: list[list[int]] = [[] for _ in range(rows.num_nodes)]
    for source, target in rows.edge_index.t().tolist():
        into[target].append(source)
    color, name = rows.colored.int().tolist(), [0] * rows.num_nodes
    for _ in range(num_layers):
        seen = [(name[u], color[u], tuple(sorted((name[s], color[s]) for s in into[u]))) for u in range(rows.num_nodes)]
        name = [names.setdefault(each, len(names) + 1) for each in seen]
    answers = [name[row] for row in rows.query_row.tolist()]
    return Counter(
        tuple(sorted(answer for answer, owner in zip(answers, node.tolist(), strict=True) if owner == v)) for v in graph
    )


def told_apart(family: str, num_layers: int, colors: int) -> bool:
    names: dict = {}
    one, other, _ = FAMILIES[family]
    return refined(one, num_layers, colors, names) != refined(other, num_layers, colors, names)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_graphs_are_strongly_regular_and_3_wl_sees_no_difference(family: str) -> None:
    one, other, (degree, adjacent, apart) = FAMILIES[family]
    for graph in (one, other):
        assert set(dict(graph.degree).values()) == {degree}
        for u, v in nx.edges(nx.complete_graph(len(graph))):
            common = len(list(nx.common_neighbors(graph, u, v)))
            assert common == (adjacent if graph.has_edge(u, v) else apart)
    assert pairs_by_3_wl(one) == pairs_by_3_wl(other)


@pytest.mark.parametrize("family", FAMILIES)
def test_three_layers_with_neighbors_tell_them_apart(family: str) -> None:
    assert told_apart(family, 3, colors=2)
    assert not any(told_apart(family, num_layers, colors=1) for num_layers in (3, 5))


@pytest.mark.parametrize("family", FAMILIES)
def test_names_of_nodes_do_not_matter(family: str) -> None:
    """Or the graphs would be told apart by mistake."""
    graph, _, _ = FAMILIES[family]
    order = torch.randperm(len(graph), generator=torch.Generator().manual_seed(0)).tolist()
    other = nx.Graph()
    other.add_nodes_from(range(len(graph)))
    other.add_edges_from((order[u], order[v]) for u, v in graph.edges)
    names: dict = {}
    assert refined(graph, 3, 2, names) == refined(other, 3, 2, names)
