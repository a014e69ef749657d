"""A picture of a graph and of its identity graph for one colored node, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import networkx as nx
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.checks import edges_of
from idgnn.identity.ego import ego_networks
from idgnn.identity.identity_graph import identity_graph
from idgnn.writing import replacing

SUFFIXES = (".png", ".svg", ".pdf")
WHOLE = 60  # nodes of a graph that is drawn as a whole; of a larger one only the neighborhood of the node is drawn
MOST = 300  # discs in a panel; more overlap
FLAT, GAP = 0.55, 1.3  # height of the two layers on the right, and the gap between them in edge lengths
ROOM = 0.5  # around the discs, in edge lengths
PLAIN, OWN, COLORED = "#d5dbe3", "#bfe3cf", "#f2a65a"
BOTH_WAYS, ONE_WAY, FAINT = "#4a5568", "#2f855a", "#c3cad4"

Edge = tuple[int, int]
Place = tuple[float, float]


@dataclass(frozen=True)
class Disc:
    """A node or a row, where it is drawn."""

    place: Place
    label: str
    color: str


@dataclass(frozen=True)
class Panel:
    """One side of the picture."""

    title: str
    discs: dict[int, Disc]
    edges: Sequence[Edge]
    faint: Sequence[Edge] = ()


def check_picture(path: Path) -> None:
    """Refuses a file whose suffix is not a format of pictures."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"the picture is {path}, expected a name that ends in {', '.join(SUFFIXES)}.")


def draw_identity_graph(data: Data, root: int, num_layers: int, names: Sequence[str], path: Path) -> None:
    """Draws the graph on the left, and on the right the rows of the color `root` above the plain rows that they read.

    Of a graph that is too large for a picture, only the nodes that reach `root` in `num_layers` steps are drawn.
    """
    check_picture(path)
    num_nodes, label = data.num_nodes or 0, [_short(name) for name in names]
    shown, part = set(range(num_nodes)), "the graph"
    if num_nodes > WHOLE:
        shown = set(ego_networks(data, num_layers, torch.tensor([root])).node.tolist())
        part = f"the nodes that reach {label[root]} in {num_layers} steps"
    rows = identity_graph(data, num_layers, torch.tensor([root]))
    own_edges = [(source, target) for source, target in _pairs(rows.edge_index) if target >= num_nodes]
    read = {source for source, _ in own_edges if source < num_nodes}
    node_of = dict(enumerate(rows.node.tolist()[num_nodes:], num_nodes))  # of each row of the color
    if max(len(shown), len(node_of) + len(read)) > MOST:
        raise ValueError(
            f"the picture would have {len(shown):,} nodes on the left and {len(node_of) + len(read):,} rows on the "
            f"right, expected at most {MOST} of each. Choose another --node, or fewer --layers."
        )

    edges = [edge for edge in _pairs(edges_of(data)) if shown.issuperset(edge)]
    place = positions(sorted(shown), edges)
    color = {node: COLORED if node == root else PLAIN for node in shown}
    left = Panel(
        f"{part};\nnode {label[root]} is colored, K = {num_layers}",
        {node: Disc(place[node], label[node], color[node]) for node in shown},
        edges,
    )
    above, below = (" (above)", " (below)") if read else ("", "")
    right = Panel(
        f"its identity graph: {_rows(len(node_of))} u|{label[root]}{above},\n"
        f"reading from {_rows(len(read), 'plain ')}{below}",
        _row_discs(place, label, root, node_of, read),
        own_edges,
        [edge for edge in edges if read.issuperset(edge)],
    )
    _write(left, right, path)


def positions(nodes: Sequence[int], edges: Iterable[Edge]) -> dict[int, Place]:
    """The position of each node by networkx's spring layout, scaled so that edges are one unit long on average."""
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((source, target) for source, target in edges if source != target)
    place = nx.spring_layout(graph, seed=0)
    lengths = [float(np.linalg.norm(place[source] - place[target])) for source, target in graph.edges]
    unit = sum(lengths) / len(lengths) if lengths else 1.0
    return {node: (float(x) / unit, float(y) / unit) for node, (x, y) in place.items()}


def _row_discs(
    place: dict[int, Place], label: Sequence[str], root: int, node_of: dict[int, int], read: set[int]
) -> dict[int, Disc]:
    """Two layers seen from the side: the plain rows that are read, and above them the rows of the color."""
    bottom = min(place[node][1] for node in node_of.values())
    lift = FLAT * (max(place[node][1] for node in read) - bottom) + GAP if read else 0.0
    discs = {row: Disc(_flat(place[row], 0.0), label[row], PLAIN) for row in read}
    for row, node in node_of.items():
        text = f"{label[node]}|{label[root]}"
        text = text if len(text) < 8 else label[node]
        discs[row] = Disc(_flat(place[node], lift), text, COLORED if node == root else OWN)
    return discs


def _write(left: Panel, right: Panel, path: Path) -> None:
    size = 4.5 * max(1.0, (len(left.discs) / 12) ** 0.4)  # inches
    radius = 12.0 * max(0.5, min(1.0, (12 / len(left.discs)) ** 0.2))  # points
    figure = Figure(figsize=(2.2 * size, size), layout="constrained")
    for axes, panel in zip(figure.subplots(1, 2), (left, right), strict=True):
        _draw(axes, panel, radius)
    dated = {"Date": None} if path.suffix == ".svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "idgnn"}), replacing(path) as temporary:  # the same file every time
        figure.savefig(temporary, format=path.suffix[1:], dpi=150, metadata=dated)


def _pairs(edge_index: Tensor) -> list[Edge]:
    return [(source, target) for source, target in edge_index.t().tolist()]


def _flat(place: Place, lift: float) -> Place:
    """A place in a layer that is seen from the side."""
    return place[0] + 0.3 * place[1], FLAT * place[1] + lift


def _short(name: str) -> str:
    return name if len(name) <= 9 else f"{name[:8]}…"


def _rows(number: int, kind: str = "") -> str:
    return f"{number or 'no'} {kind}row{'s' * (number != 1)}"


def _draw(axes: Axes, panel: Panel, radius: float) -> None:
    """Edges as lines, or as arrows if they have no reverse, below discs of a radius in points."""
    place = {node: disc.place for node, disc in panel.discs.items()}
    size = (2 * radius) ** 2
    for edges, both_ways, one_way in ((panel.faint, FAINT, FAINT), (panel.edges, BOTH_WAYS, ONE_WAY)):
        every = set(edges)
        mutual = sorted((u, v) for u, v in every if u < v and (v, u) in every)
        single = sorted((u, v) for u, v in every if (v, u) not in every)
        for some, color, style in ((mutual, both_ways, "-"), (single, one_way, "-|>")):
            graph = nx.DiGraph(some)
            nx.draw_networkx_edges(
                graph, place, some, 1.1, color, arrowstyle=style, arrowsize=0.9 * radius, ax=axes, node_size=size
            )
        loops = [place[u] for u, v in every if u == v]
        if loops:  # as rings that are partly covered by the discs
            above = offset_copy(axes.transData, axes.get_figure(root=True), y=1.2 * radius, units="points")
            ring = {"facecolors": "none", "edgecolors": both_ways, "transform": above, "zorder": 1}
            axes.scatter(*zip(*loops, strict=True), s=(1.4 * radius) ** 2, **ring)
    colors = [disc.color for disc in panel.discs.values()]
    x, y = zip(*place.values(), strict=True)
    axes.scatter(x, y, s=size, color=colors, edgecolors=BOTH_WAYS, zorder=3, clip_on=False)
    for disc in panel.discs.values():
        font = max(5.5, min(10.0, 2 * radius / (0.7 * max(len(disc.label), 1))))
        axes.text(*disc.place, disc.label, ha="center", va="center", fontsize=font, zorder=4, parse_math=False)
    axes.set_aspect("equal", adjustable="datalim")
    axes.update_datalim([(min(x) - ROOM, min(y) - ROOM), (max(x) + ROOM, max(y) + ROOM)])
    axes.margins(0)
    axes.set_title(panel.title, fontsize=11, parse_math=False)
    axes.axis("off")
