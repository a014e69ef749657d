"""Two graphs that 3-WL cannot tell apart: the 4 x 4 rook's graph and the Shrikhande graph.

Both have 16 nodes of degree 6; adjacent nodes have 2 common neighbors, and so have nodes that are not adjacent. So
each node, and each pair, sees the same numbers, and refinement by colors of pairs (3-WL) ends where it began. An ID-GNN
with one color sees closed walks, which such graphs have alike. With a second color on a neighbor, three rounds are
enough: the neighbors of a node form two triangles in the one graph and a hexagon in the other.

    python examples/strongly_regular.py [picture.svg]
"""

import sys
from collections import Counter

import matplotlib
import networkx as nx
import torch
from matplotlib.figure import Figure
from torch_geometric.utils import from_networkx

import idgnn

SIZE = 4  # both graphs live on the squares of a 4 x 4 board; node = SIZE * row + column
ROOT = 5


def rook_graph() -> nx.Graph:
    """Two squares are adjacent if a rook moves from one to the other: they share a row or a column."""
    squares = [(row, column) for row in range(SIZE) for column in range(SIZE)]
    return on_board(lambda a, b: a != b and (a[0] == b[0] or a[1] == b[1]), squares)


def shrikhande_graph() -> nx.Graph:
    """Two squares of the board, whose sides are joined, are adjacent if they differ by (0, 1), (1, 0) or (1, 1)."""
    squares = [(row, column) for row in range(SIZE) for column in range(SIZE)]
    steps = {(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)}
    return on_board(lambda a, b: ((b[0] - a[0]) % SIZE, (b[1] - a[1]) % SIZE) in steps, squares)


def on_board(adjacent, squares: list[tuple[int, int]]) -> nx.Graph:
    """The graph of the squares, numbered row by row."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(squares)))
    pairs = [(i, j) for i in range(len(squares)) for j in range(i) if adjacent(squares[i], squares[j])]
    graph.add_edges_from(pairs)
    return graph


def pairs_by_3_wl(graph: nx.Graph) -> Counter:
    """How many pairs of nodes have each color when 3-WL (2-FWL) has stopped."""
    nodes = list(graph)
    color = {(u, v): (u == v) + 2 * graph.has_edge(u, v) for u in nodes for v in nodes}
    while True:
        seen = {
            (u, v): (color[u, v], tuple(sorted((color[u, x], color[x, v]) for x in nodes)))
            for u in nodes
            for v in nodes
        }
        number = {each: i for i, each in enumerate(sorted(set(seen.values())))}
        refined = {pair: number[each] for pair, each in seen.items()}
        if len(number) == len(set(color.values())):
            return Counter(seen.values())  # by what is seen, so that two graphs can be compared
        color = refined


@torch.no_grad()
def difference(num_layers: int, **options) -> float:
    """By how much an untrained network tells the graphs apart: the sums of the embeddings of their nodes."""
    torch.manual_seed(0)
    model = idgnn.IDGNN(1, 16, 16, num_layers, conv="gin", normalize=False, **options).double().eval()
    sums = []
    for graph in (rook_graph(), shrikhande_graph()):
        edge_index = from_networkx(graph).edge_index
        sums.append(model(torch.ones(len(graph), 1, dtype=torch.float64), edge_index).sum(dim=0))
    return float((sums[0] - sums[1]).abs().max() / sums[0].abs().max())


def draw(path: str) -> None:
    """Both graphs, with the neighbors of one node and the edges between them."""
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    squares = {node: f"{node // SIZE},{node % SIZE}" for node in range(SIZE * SIZE)}
    names = ("4 x 4 rook's graph: two triangles", "Shrikhande graph: a hexagon")
    for axes, graph, name in zip(figure.subplots(1, 2), (rook_graph(), shrikhande_graph()), names, strict=True):
        place = nx.shell_layout(graph, [[ROOT], hexagon(graph), outside(graph)]) | {ROOT: (0.0, 0.0)}
        beside = graph.subgraph(graph[ROOT])
        nx.draw_networkx_edges(graph, place, ax=axes, edge_color="#d5dbe3")
        nx.draw_networkx_edges(graph, place, [(ROOT, w) for w in graph[ROOT]], ax=axes, edge_color="#8795a8")
        nx.draw_networkx_edges(graph, place, list(beside.edges), ax=axes, edge_color="#2f855a", width=2.5)
        color = {ROOT: "#f2a65a", **dict.fromkeys(graph[ROOT], "#bfe3cf")}
        nodes = [color.get(node, "#d5dbe3") for node in graph]
        nx.draw_networkx_nodes(graph, place, list(graph), ax=axes, node_color=nodes, edgecolors="#4a5568")
        nx.draw_networkx_labels(graph, place, squares, 7, ax=axes)
        axes.set_title(f"{name}\nbetween the neighbors of a node", fontsize=11)
        axes.axis("off")
    with matplotlib.rc_context({"svg.hashsalt": "idgnn"}):  # the same file every time
        figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def hexagon(graph: nx.Graph) -> list[int]:
    """The neighbors of the root, component by component, each along its cycle."""
    beside = graph.subgraph(graph[ROOT])
    return [node for part in nx.connected_components(beside) for node, _ in nx.find_cycle(beside, min(part))]


def outside(graph: nx.Graph) -> list[int]:
    """The other nodes."""
    return [node for node in graph if node != ROOT and node not in graph[ROOT]]


if __name__ == "__main__":
    rook, shrikhande = rook_graph(), shrikhande_graph()
    print(f"isomorphic: {nx.is_isomorphic(rook, shrikhande)}")
    print(f"told apart by 3-WL: {pairs_by_3_wl(rook) != pairs_by_3_wl(shrikhande)}")
    for num_layers in (3, 6):
        for name, options in {
            "plain GNN": {"identity": "none"},
            "one color": {"colors": 1},
            "two colors, neighbors": {"colors": 2, "second": "neighbors"},
        }.items():
            found = difference(num_layers, **options)
            print(f"told apart by {num_layers} layers, {name}: {found > 1e-6} (relative difference {found:.1e})")
    picture = sys.argv[1] if len(sys.argv) > 1 else "strongly_regular.svg"
    draw(picture)
    print(f"the picture: {picture}")
