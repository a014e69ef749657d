"""Counts and times the work of ranking all circuits for drivers of rel-f1: `python -m benchmarks.relational_cost`.

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
from benchmarks.relational import RESULTS, add, settings_of
from idgnn.graphs.relational.graph import aged_channels, aged_snapshot
from idgnn.graphs.relational.task_tables import ItemLists
from idgnn.identity.hetero.types import TypedGraph
from idgnn.models.relational_predictor import Moment, RelationalPredictor
from idgnn.tasks.ranking import ranking_metrics, top_items
from idgnn.tasks.relational import RelationalProblem
from idgnn.tasks.relational_files import rel_f1
from idgnn.training.relational import Moments, train_epoch

TASK = "driver-circuit-compete"
NUM_LAYERS = 4
SAMPLED = (128, 64, 32, 16)


def main() -> None:
    """Counts, prints and records."""
    problem = rel_f1(data_folder("relational") / "relational" / "rel-f1", TASK).problem
    data = aged_snapshot(problem.graph, int(problem.seen_until("test")[0]))
    record = count(data, problem.queries["test"].entity.tolist())
    add(Path(RESULTS), "rel-f1 cost", record)
    for name, (rows, messages) in record.items():
        print(f"{name}: {rows:,.0f} states and {messages:,.0f} messages a driver")
    for key, measured in (("step", time_steps(problem)), ("epoch", time_epochs(problem)), ("metrics", time_metrics())):
        add(Path(RESULTS), f"rel-f1 {key}", measured)
        print(key, measured)


class PlainHetero(nn.Module):
    """PyG's HeteroConv without identity: a mean for each edge type, in all rounds, at all nodes."""

    def __init__(self, graph: HeteroData, channels: int) -> None:
        super().__init__()
        data, widths = graph, aged_channels(graph)
        self.first = nn.ModuleDict({kind: nn.Linear(widths[kind], channels) for kind in data.node_types})
        self.rounds = nn.ModuleList(
            HeteroConv({kind: SAGEConv((channels, channels), channels) for kind in data.edge_types}, aggr="sum")
            for _ in range(NUM_LAYERS)
        )
        self.norms = nn.ModuleList(
            nn.ModuleDict({kind: nn.LayerNorm(channels) for kind in data.node_types}) for _ in range(NUM_LAYERS)
        )

    def forward(self, moment: Moment, drivers: torch.Tensor, lag: torch.Tensor) -> torch.Tensor:
        """Scores of all circuits, by the products of two towers; called as the network it is compared with."""
        data = moment.data
        h = {kind: layer(data[kind].x).relu() for kind, layer in self.first.items()}
        for conv, norm in zip(self.rounds, self.norms, strict=True):
            h = {kind: norm[kind](state).relu() for kind, state in conv(h, data.edge_index_dict).items()}
        return h["drivers"][drivers] @ h["circuits"].t()


def networks(problem: RelationalProblem) -> dict[str, nn.Module]:
    """ID-GNN-Full with the settings of the results, and a network of the same depth and width without identity."""
    settings = settings_of(TASK, "full", 0)
    assert settings.num_layers == NUM_LAYERS
    full = RelationalPredictor(
        problem.graph.metadata(),
        aged_channels(problem.graph),
        entity_type="drivers",
        item_type="circuits",
        num_layers=NUM_LAYERS,
        hidden_channels=settings.hidden_channels,
    )
    return {"HeteroConv": PlainHetero(problem.graph, settings.hidden_channels), "ID-GNN-Full": full}


def time_steps(problem: RelationalProblem, turns: int = 15) -> dict[str, float]:
    """CPU seconds of a training step that is prepared, forward and backward, the median over turns.

    For the drivers of the test queries, on the rows of five years. Other programs do not count.
    """
    drivers, moment = problem.queries["test"].entity, Moments(problem.graph, 5).at(int(problem.seen_until("test")[0]))
    seconds: dict[str, list[float]] = {}
    models, lag = networks(problem), torch.zeros(drivers.numel())
    for _ in range(turns):
        for name, model in models.items():
            start = time.process_time()
            model(moment, drivers, lag).square().mean().backward()
            seconds.setdefault(name, []).append(time.process_time() - start)
    return {name: median(each[2:]) for name, each in seconds.items()}  # the first ones prepare


def time_epochs(problem: RelationalProblem, turns: int = 4) -> dict[str, list[float]]:
    """CPU seconds of each epoch of training, in turns: the same queries and snapshots, with all preparation.

    In the first one the snapshots are made, and neighbor lists for ID-GNN-Full.
    """
    settings = settings_of(TASK, "full", 0)
    seconds: dict[str, list[float]] = {}
    state = {
        name: (model, torch.optim.Adam(model.parameters()), Moments(problem.graph, settings.window_years))
        for name, model in networks(problem).items()
    }
    for turn in range(turns):
        for name, (model, optimizer, moments) in state.items():
            order = torch.Generator().manual_seed(turn)
            start = time.process_time()
            train_epoch(model, optimizer, moments, problem.queries["train"], problem, settings, order)
            seconds.setdefault(name, []).append(time.process_time() - start)
    return seconds


def time_metrics() -> dict[str, dict[str, float]]:
    """CPU seconds of MAP, recall, NDCG and MRR at k of random scores: ours, and torchmetrics'."""
    from torchmetrics.retrieval import RetrievalMAP, RetrievalMRR, RetrievalNormalizedDCG, RetrievalRecall

    found: dict[str, dict[str, float]] = {}
    generator = torch.Generator().manual_seed(0)
    for what, queries, items, k in (
        ("702 queries, 77 items", 702, 77, 10),
        ("512 queries, 40,981 items", 512, 40981, 20),
    ):
        score = torch.rand(queries, items, generator=generator)
        wanted = torch.rand(queries, items, generator=generator) < 10 / items
        lists = ItemLists.of([row.nonzero().view(-1).tolist() for row in wanted])
        start = time.process_time()
        ranking_metrics(top_items(score, k), lists)
        ours = time.process_time() - start
        index = torch.arange(queries).repeat_interleave(items)
        start = time.process_time()
        for metric in (RetrievalMAP, RetrievalRecall, RetrievalNormalizedDCG, RetrievalMRR):
            metric(top_k=k, empty_target_action="skip")(score.flatten(), wanted.flatten(), indexes=index)
        found[what] = {"ours": ours, "torchmetrics": time.process_time() - start}
    return found


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
