"""Pictures for the page on the theory: colors that spread, states that still matter, and the identity graph.

Which states differ is not drawn by hand: a network with random weights runs with and without the color, and the states
are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import networkx as nx
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch_geometric.utils import from_networkx

from idgnn import IdentityConv

PLAIN, CHANGED, COLORED, IDLE = "#d5dbe3", "#bfe3cf", "#f2a65a", "#ffffff"
LINE = "#4a5568"
PALETTE = ("#66c2a5", "#fc8d62", "#8da0cb", "#e78ac3", "#a6d854", "#ffd92f", "#e5c494", "#b3b3b3")


def changed_states(graph: nx.Graph, root: int, num_layers: int) -> list[list[bool]]:
    """For k = 0 to K and each node u: whether h(u|root, k) differs from h(u, k), for random weights."""
    torch.manual_seed(0)
    edge_index = from_networkx(graph).edge_index
    colored = torch.zeros(len(graph), dtype=torch.bool)
    colored[root] = True
    plain = own = torch.ones(len(graph), 4, dtype=torch.double)  # [nodes, channels]
    found = [[node == root for node in graph]]  # at first only the color itself
    for _ in range(num_layers):
        layer = IdentityConv("gin", 4, 4).double()
        none = torch.zeros_like(colored)
        plain, own = layer(plain, edge_index, colored=none), layer(own, edge_index, colored=colored)
        found.append(((plain - own).abs().amax(dim=1) > 1e-9).tolist())
    return found


def draw(axes: Axes, graph: nx.Graph, place: dict, color: Sequence[str], title: str) -> None:
    """A graph with a color for each node."""
    nx.draw_networkx_edges(graph, place, ax=axes, edge_color=LINE, width=1.1)
    nodes = nx.draw_networkx_nodes(graph, place, ax=axes, node_color=list(color), edgecolors=LINE, node_size=260)
    nodes.set(zorder=2, clip_on=False)
    nx.draw_networkx_labels(graph, place, ax=axes, font_size=9)
    axes.set_title(title, fontsize=10)
    axes.set_aspect("equal")
    axes.margins(0.12, 0.25)
    axes.axis("off")


def spreading(graph: nx.Graph, place: dict, root: int, num_layers: int, *, needed: bool = False) -> Figure:
    """A panel for each k: the states that the color has reached; with `needed`, white if no longer needed."""
    distance = nx.single_source_shortest_path_length(graph, root)
    rows = (num_layers + 2) // 2
    figure, panels = plt.subplots(rows, 2, figsize=(9, 1.9 * rows), layout="constrained")
    for k, (axes, changed) in enumerate(zip(panels.flat, changed_states(graph, root, num_layers), strict=True)):
        matters = [distance.get(node, num_layers + 1) <= num_layers - k for node in graph]
        color = [
            COLORED if node == root else IDLE if needed and not keep else CHANGED if own else PLAIN
            for node, own, keep in zip(graph, changed, matters, strict=True)
        ]
        draw(axes, graph, place, color, f"k = {k}")
    return figure


def refinement(graphs: Sequence[nx.Graph], places: Sequence[dict], rounds: int) -> Figure:
    """A row for each graph, a panel for each round of the 1-WL test: equal colors are equal states of a plain GNN."""
    states: list[dict] = [dict.fromkeys(graph, 0) for graph in graphs]
    size = (2.6 * (rounds + 1), 1.9 * len(graphs))
    figure, panels = plt.subplots(len(graphs), rounds + 1, figsize=size, layout="constrained")
    for k in range(rounds + 1):
        for axes, graph, place, state in zip(panels[:, k], graphs, places, states, strict=True):
            draw(axes, graph, place, [PALETTE[state[node]] for node in graph], f"k = {k}")
        seen: dict[tuple, int] = {}
        signed = [
            {node: (state[node], *sorted(state[other] for other in graph[node])) for node in graph}
            for graph, state in zip(graphs, states, strict=True)
        ]
        states = [{node: seen.setdefault(sign, len(seen)) for node, sign in each.items()} for each in signed]
    return figure


HEXAGON = {0: (0, 0), 1: (0.6, 0.8), 2: (1.6, 0.8), 3: (2.2, 0), 4: (1.6, -0.8), 5: (0.6, -0.8)}
TRIANGLES = {0: (0, 0), 1: (0.8, 0.7), 2: (0.8, -0.7), 3: (2.2, 0), 4: (1.4, 0.7), 5: (1.4, -0.7)}
TAILED = {0: (1.0, 0), 1: (0.5, 0.7), 2: (0, 0), 3: (0.5, -0.7), 4: (1.7, 0), 5: (2.4, 0)}
PATH = {node: (0.5 * node, 0.35 * (-1) ** node) for node in range(6)}
