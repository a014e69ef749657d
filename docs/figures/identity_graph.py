"""Draws `docs/figures/identity_graph.svg`: a small graph, and its identity graph for one colored node."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import FancyArrowPatch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from idgnn import identity_graph

PLACE = {0: (0.0, 0.0), 1: (1.1, 0.55), 2: (1.1, -0.55), 3: (2.2, 0.55), 4: (2.2, -0.55), 5: (3.2, 0.0)}
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 5), (4, 5)]
ROOT, LAYERS, LIFT = 0, 3, 2.3
PLAIN, OWN, COLORED = "#d5dbe3", "#bfe3cf", "#f2a65a"


def main() -> None:
    """Writes the picture beside this file."""
    plt.rcParams["svg.hashsalt"] = "idgnn"  # the same file every time
    graph = Data(edge_index=to_undirected(torch.tensor(EDGES).t()), num_nodes=len(PLACE))
    rows = identity_graph(graph, LAYERS, queries=torch.tensor([ROOT]))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=(1, 1.25), layout="constrained")
    draw(left, PLACE, graph.edge_index.t().tolist(), {node: str(node) for node in PLACE}, {ROOT: COLORED})
    left.set_title("a graph; node 0 is to be embedded, K = 3", fontsize=11)
    place, name, color = {}, {}, {}
    for row, (node, colored) in enumerate(zip(rows.node.tolist(), rows.colored.tolist(), strict=True)):
        own = row >= graph.num_nodes
        x, y = PLACE[node]
        place[row] = (x + 0.35 * own, y + LIFT * own)
        name[row] = f"{node}|{ROOT}" if own else str(node)
        color[row] = COLORED if colored else OWN if own else PLAIN
    draw(right, place, rows.edge_index.t().tolist(), name, color)
    right.set_title("its identity graph: plain rows below, rows u|0 above", fontsize=11)
    right.annotate(
        "read here",
        place[int(rows.query_row)],
        xytext=(-60, 22),
        textcoords="offset points",
        fontsize=10,
        arrowprops={"arrowstyle": "->", "shrinkB": 14},
    )
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


def draw(axes: plt.Axes, place: dict, edges: list, name: dict, color: dict) -> None:
    """Nodes as discs; edges as lines, or as arrows where they go one way."""
    both = {tuple(edge) for edge in edges}
    for source, target in both:
        mutual = (target, source) in both
        if mutual and source > target:
            continue
        style = "-" if mutual else "-|>"
        line = FancyArrowPatch(
            place[source],
            place[target],
            arrowstyle=style,
            mutation_scale=12,
            shrinkA=13,
            shrinkB=13,
            color="#4a5568" if mutual else "#2f855a",
            linewidth=1.2,
            zorder=1,
        )
        axes.add_patch(line)
    for node, (x, y) in place.items():
        axes.scatter(x, y, s=560, color=color.get(node, PLAIN), edgecolors="#4a5568", zorder=2, clip_on=False)
        axes.text(x, y, name[node], ha="center", va="center", fontsize=10, zorder=3)
    axes.set_aspect("equal")
    axes.margins(0.15)
    axes.axis("off")


if __name__ == "__main__":
    main()
