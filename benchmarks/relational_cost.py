"""Counts the work of ranking all circuits for a driver of rel-f1: `python -m benchmarks.relational_cost`.

States and messages of all K = 4 rounds, for each driver of the test queries, on all rows before 2010-01-01:

- ID-GNN-Full: the rows that the color has reached and that still lead to a circuit, each with all its messages;
- full: the neighborhood of a driver, K steps, of which round k needs what is at most K - k steps away;
- sampled: at most 128, 64, 32, 16 rows of each edge type and hop, all of them in all rounds, as RelBench runs it.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch
from torch import nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

from benchmarks.data import data_folder
from benchmarks.relational import RESULTS, add
from idgnn.graphs.relational.graph import aged_snapshot
from idgnn.graphs.relational.times import YEAR
from idgnn.identity.hetero.types import TypedGraph
from idgnn.models.relational_predictor import Moment, RelationalPredictor
from idgnn.tasks.relational_files import rel_f1

NUM_LAYERS = 4
SAMPLED = (128, 64, 32, 16)


def main() -> None:
    """Counts, prints and records."""
    problem = rel_f1(data_folder("relational") / "relational" / "rel-f1", "driver-circuit-compete").problem
    data = aged_snapshot(problem.graph, int(problem.seen_until("test")[0]))
    record = count(data, problem.queries["test"].entity.tolist())
    add(Path(RESULTS), "rel-f1 cost", record)
    for name, (rows, messages) in record.items():
        print(f"{name}: {rows:,.0f} states and {messages:,.0f} messages a driver")
    recent = aged_snapshot(problem.graph, int(problem.seen_until("test")[0]), 5 * YEAR)
    seconds = time_steps(recent, problem.queries["test"].entity)
    add(Path(RESULTS), "rel-f1 step", seconds)
    print(seconds)


class PlainHetero(nn.Module):
    """PyG's HeteroConv without identity: a mean for each edge type, in all rounds, at all nodes."""

    def __init__(self, data: HeteroData, channels: int) -> None:
        super().__init__()
        self.first = nn.ModuleDict({kind: nn.Linear(data[kind].x.size(1), channels) for kind in data.node_types})
        self.rounds = nn.ModuleList(
            HeteroConv({kind: SAGEConv((channels, channels), channels) for kind in data.edge_types}, aggr="sum")
            for _ in range(NUM_LAYERS)
        )
        self.norms = nn.ModuleList(
            nn.ModuleDict({kind: nn.LayerNorm(channels) for kind in data.node_types}) for _ in range(NUM_LAYERS)
        )

    def forward(self, data: HeteroData, drivers: torch.Tensor) -> torch.Tensor:
        """Scores of all circuits, by the products of two towers."""
        h = {kind: layer(data[kind].x).relu() for kind, layer in self.first.items()}
        for conv, norm in zip(self.rounds, self.norms, strict=True):
            h = {kind: norm[kind](state).relu() for kind, state in conv(h, data.edge_index_dict).items()}
        return h["drivers"][drivers] @ h["circuits"].t()


def time_steps(data: HeteroData, drivers: torch.Tensor, channels: int = 32, turns: int = 15) -> dict[str, float]:
    """CPU seconds of a training step, forward and backward, the median over turns: other programs do not count."""
    lag = torch.zeros(drivers.numel())
    widths = {kind: data[kind].x.size(1) for kind in data.node_types}
    options = {"entity_type": "drivers", "item_type": "circuits", "num_layers": NUM_LAYERS, "hidden_channels": channels}
    full, moment = RelationalPredictor(data.metadata(), widths, **options), Moment(data)
    plain = PlainHetero(data, channels)
    steps = {"HeteroConv": lambda: plain(data, drivers), "ID-GNN-Full": lambda: full(moment, drivers, lag)}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(turns):
        for name, step in steps.items():
            start = time.process_time()
            step().square().mean().backward()
            seconds[name].append(time.process_time() - start)
    return {name: median(each[2:]) for name, each in seconds.items()}  # the first ones prepare


def count(data: HeteroData, drivers: list[int]) -> dict[str, tuple[float, float]]:
    """States and messages per driver, mean over the drivers."""
    graph = TypedGraph.of_data(data)
    source, target = graph.edge_index.numpy()
    kind = graph.edge_type.numpy()
    degree = np.bincount(target, minlength=graph.total)
    circuits = np.arange(graph.size["circuits"]) + graph.first["circuits"]
    to_item = _distance(source, target, graph.total, circuits)
    found: dict[str, list[tuple[float, float]]] = {"ID-GNN-Full": [], "full": [], "sampled": []}
    generator = np.random.default_rng(0)
    by_target = _sorted(target, source, kind)
    for driver in drivers:
        root = np.array([driver + graph.first["drivers"]])
        near = _distance(target, source, graph.total, root)  # the steps from the color
        own = [(near <= k) & (to_item <= NUM_LAYERS - k) for k in range(1, NUM_LAYERS + 1)]
        found["ID-GNN-Full"].append((sum(map(np.sum, own)), sum(degree[rows].sum() for rows in own)))
        back = _distance(source, target, graph.total, root)
        own = [back <= NUM_LAYERS - k for k in range(1, NUM_LAYERS + 1)]
        found["full"].append((sum(map(np.sum, own)), sum(degree[rows].sum() for rows in own)))
        nodes, edges = _sample(by_target, graph.total, root[0], generator)
        found["sampled"].append((NUM_LAYERS * nodes, NUM_LAYERS * edges))
    return {name: (mean(float(a) for a, _ in each), mean(float(b) for _, b in each)) for name, each in found.items()}


def _distance(source: np.ndarray, target: np.ndarray, size: int, start: np.ndarray) -> np.ndarray:
    """The number of edges, against their direction, from `start` to every node, up to one more than the layers."""
    distance = np.full(size, NUM_LAYERS + 1)
    distance[start] = 0
    for step in range(1, NUM_LAYERS + 1):
        reached = source[distance[target] == step - 1]
        distance[reached] = np.minimum(distance[reached], step)
    return distance


Sorted = tuple[np.ndarray, np.ndarray, np.ndarray]


def _sorted(target: np.ndarray, source: np.ndarray, kind: np.ndarray) -> Sorted:
    """The edges by target and edge type: target, type, source."""
    order = np.lexsort((kind, target))
    return target[order], kind[order], source[order]


def _sample(edges: Sorted, size: int, root: int, generator: np.random.Generator) -> tuple[int, int]:
    """The nodes and edges of a sampled neighborhood."""
    target, kind, source = edges
    first, last = np.searchsorted(target, np.arange(size)), np.searchsorted(target, np.arange(size), side="right")
    seen, frontier, count = {root}, [root], 0
    for most in SAMPLED:
        reached: list[int] = []
        for node in frontier:
            mine, types = source[first[node] : last[node]], kind[first[node] : last[node]]
            for each in np.unique(types):
                some = mine[types == each]
                some = some if some.size <= most else generator.choice(some, most, replace=False)
                count += some.size
                reached += [other for other in some.tolist() if other not in seen]
                seen.update(some.tolist())
        frontier = list(dict.fromkeys(reached))
    return len(seen), count


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
