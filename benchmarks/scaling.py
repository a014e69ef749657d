"""How the cost of ID-GNN-Full grows with the number of nodes, the degree, the depth, and with hubs.

`python -m benchmarks.scaling --output benchmarks/results/scaling.json` measures rows, messages, bytes and seconds of
the plain GNN, of ours (`IDGNN.embed`) and of ego networks (Algorithm 1); `--figure docs/figures/scaling.svg` draws
them. Ego networks are built for a sample of the nodes, and their figures scaled to all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from benchmarks.measure import write_record
from idgnn import IDGNN, identity_cost
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cone import changed_edges, find_cone
from idgnn.identity.ego import ego_networks
from idgnn.identity.queries import Queries

WIDTH, SAMPLE, ROOTS = 32, 200, 2_000
CONTENDERS = {"plain": "plain GNN", "ours": "ID-GNN-Full, ours", "ego": "ID-GNN-Full, ego networks"}
MOST_EGO_ROWS = 1_000_000  # of a sample: then it is large enough
NODES, DEGREE, DEPTH = 20_000, 8, 3  # where the sweeps cross
SWEEPS: dict[str, list[tuple[int, int, int]]] = {
    "nodes": [(nodes, DEGREE, DEPTH) for nodes in (1_000, 10_000, 100_000, 1_000_000)],
    "mean degree": [(NODES, degree, DEPTH) for degree in (2, 4, 8, 16, 32)],
    "K": [(NODES, 4, depth) for depth in (1, 2, 3, 4, 5, 6)],
}
GRAPHS = ("without hubs", "with hubs")


def main() -> None:
    """Measures all points, writes them and draws them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__.splitlines()[0])
    parser.add_argument("--memory", default="2GiB", help="of an embedding")
    parser.add_argument("--most-nodes", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path, default=None)
    parser.add_argument("--figure", type=Path, default=None)
    parser.add_argument("--redraw", type=Path, default=None, help="a record to draw, without measuring anything")
    options = parser.parse_args()
    if options.redraw is not None:
        draw(json.loads(options.redraw.read_text())["figures"], options.figure)
        return
    points = [
        (sweep, kind, *point)
        for sweep, each in SWEEPS.items()
        for point in each
        for kind in GRAPHS
        if point[0] <= options.most_nodes
    ]
    found = []
    with Progress(transient=True) as progress:
        for sweep, kind, nodes, degree, depth in progress.track(points, description="Measuring"):
            measured = measure(graph(kind, nodes, degree), depth, options.memory)
            found.append({"sweep": sweep, "graph": kind, "nodes": nodes, "degree": degree, "K": depth, **measured})
            progress.console.print(json.dumps(found[-1]))
    fitted = slopes(found)
    print(json.dumps(fitted, indent=2))
    write_record(options.output, found, width=WIDTH, slopes=fitted)
    if options.figure is not None:
        draw(found, options.figure)


def graph(kind: str, num_nodes: int, degree: int) -> Data:
    """Edges between nodes drawn uniformly, or with one end that is drawn in favor of the first nodes: hubs."""
    generator = torch.Generator().manual_seed(0)
    ends = torch.rand(2, num_nodes * degree // 2, generator=generator)
    if kind == "with hubs":
        ends[1] = ends[1] * ends[1] * ends[1]
    edge_index = to_undirected((ends * num_nodes).long(), num_nodes=num_nodes)
    return Data(x=torch.ones(num_nodes, 1), edge_index=edge_index, num_nodes=num_nodes)


def measure(data: Data, depth: int, memory: str) -> dict[str, Any]:
    """One point, with GCNs of equal width."""
    size, edges = data.num_nodes or 0, data.edge_index.size(1)
    plain, ours = (IDGNN(1, WIDTH, None, depth, "gcn", identity).eval() for identity in ("none", "full"))
    found: dict[str, Any] = {"edges": edges, "largest degree": int(torch.bincount(data.edge_index[0]).max())}
    found["plain"] = {"rows": size, "messages": edges, "seconds": seconds(lambda: plain(data.x, data.edge_index))}
    cost = identity_cost(data, depth)
    found["ours"] = {
        "rows": cost.rows,
        "edges": cost.edges,
        "bytes": cost.bytes,
        "messages": edges + exchanged(data, depth),
        "seconds": seconds(lambda: ours.embed(data, memory=memory)),
    }
    roots = torch.randperm(size, generator=torch.Generator().manual_seed(1))[:SAMPLE]
    found["ego"] = ego(data, ours, roots)
    return found


def exchanged(data: Data, depth: int) -> int:
    """Messages between rows of the same color: all that ours computes for layers that sum, beside the plain ones."""
    graph = IndexedGraph(data.edge_index, data.num_nodes or 0)
    total = 0
    for roots in torch.arange(graph.num_nodes).split(ROOTS):
        cone = find_cone(graph, depth, Queries(roots, roots))
        total += changed_edges(graph, cone, gradients=False).into.edge.numel()
    return total


def ego(data: Data, model: IDGNN, roots: torch.Tensor) -> dict[str, float]:
    """Ego networks of as many roots as are not too much, scaled to all nodes.

    What a call does once for the whole graph is left out: it is in the time of the first root alone, too.
    """
    rows = ego_networks(data, model.num_layers, roots[:5]).node.numel() / 5
    roots = roots[: max(min(roots.numel(), int(MOST_EGO_ROWS / rows)), 2)]
    networks = ego_networks(data, model.num_layers, roots)
    one, many = (
        seconds(lambda some=some: model(data.x, data.edge_index, queries=some, engine="ego"))
        for some in (roots[:1], roots)
    )
    scale = (data.num_nodes or 0) / roots.numel()
    each = (many - one) / (roots.numel() - 1)
    return {
        "rows": networks.node.numel() * scale,
        "messages": networks.edge_index.size(1) * scale,
        "seconds": max(each, 0.0) * (data.num_nodes or 0),
        "roots": roots.numel(),
    }


def seconds(call: Any) -> float:
    """Of one call, without gradients."""
    start = time.perf_counter()
    with torch.no_grad():
        call()
    return time.perf_counter() - start


def slopes(found: list[dict[str, Any]]) -> dict[str, float]:
    """How cost grows with the number of edges: the exponent that fits best, 1 if it grows as they do."""
    fitted = {}
    for sweep in ("nodes", "mean degree"):
        for kind in GRAPHS:
            for what in ("rows", "messages", "seconds"):
                for who in CONTENDERS:
                    points = [
                        (math.log(each["edges"]), math.log(each[who][what]))
                        for each in found
                        if each["sweep"] == sweep and each["graph"] == kind and what in each[who]
                    ]
                    if len(points) > 1:
                        fitted[f"{sweep}, {kind}, {who}: {what}"] = round(_slope(points), 3)
    return fitted


def _slope(points: list[tuple[float, float]]) -> float:
    across, up = (sum(each) / len(points) for each in zip(*points, strict=True))
    return sum((x - across) * (y - up) for x, y in points) / sum((x - across) ** 2 for x, _ in points)


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Messages above, seconds below; a column for each sweep, a line for each contender, dashed with hubs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.fonttype"] = "none"  # text stays text
    plt.rcParams["svg.hashsalt"] = "idgnn"
    across = {"nodes": "nodes", "mean degree": "degree", "K": "K"}
    figure, axes = plt.subplots(2, len(SWEEPS), figsize=(11, 6.4), sharey="row", layout="constrained")
    colors = dict(zip(CONTENDERS, ("#8a8f98", "#1668c7", "#d1603d"), strict=True))
    for column, sweep in enumerate(SWEEPS):
        for row, what in enumerate(("messages", "seconds")):
            axis = axes[row][column]
            for who, name in CONTENDERS.items():
                for kind, style in zip(GRAPHS, ("-", "--"), strict=True):
                    points = [
                        (each[across[sweep]], each[who][what])
                        for each in found
                        if each["sweep"] == sweep and each["graph"] == kind and what in each[who]
                    ]
                    if points:
                        axis.plot(*zip(*points, strict=True), style, color=colors[who], marker="o", ms=3, label=name)
            axis.set(yscale="log", xlabel=sweep if row else None, ylabel=None if column else what)
            if sweep != "K":
                axis.set_xscale("log", base=10 if sweep == "nodes" else 2)
            axis.grid(alpha=0.25)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles[::2], labels[::2], loc="outside upper center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
