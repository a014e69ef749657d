"""Table 4: run time of a batch, forward, and forward and backward."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import mean, median, stdev
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.experiments.protocols import PAPER_NETWORK
from idgnn.experiments.tables.table4 import CONTENDERS, PASSES
from idgnn.graphs.load import load
from idgnn.identity.ego import ego_networks
from idgnn.identity.row_graph import whole
from idgnn.models.budget import num_parameters
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.models.prepared import Prepared
from idgnn.tasks.labeled_queries import labeled_queries
from idgnn.tasks.objective import Classes
from idgnn.tasks.query_set import QuerySet, stack
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.cuda_graphs import CudaGraphCache

Call = Callable[[bool], Tensor]
"""Forward, and backward too if the argument is true."""

_TASK = TaskSettings(name="graph-classification")
_IDENTITY: dict[str, Literal["none", "fast", "full"]] = {
    "gcn": "none",
    "fast-gcn": "fast",
    "gcn-ego": "none",
    "full-gcn-ego": "full",
    "full-gcn": "full",
}


def measure_run_time(arguments: Mapping[str, int | str], seed: int, device: str) -> dict[str, Any]:
    """Milliseconds of a batch of `graphs` graphs of a dataset by 3-layer networks with equal numbers of parameters.

    The contenders take turns, `rounds` times (20 unless given), so that a busy machine slows all of them. As in the
    paper the time to load a batch is left out, so everything is prepared before. A ratio is the median over the rounds.
    Today's GPUs compute such a batch faster than kernels are launched one by one; so on a GPU the same is timed once
    more, replayed as CUDA graphs.
    """
    rounds = int(arguments.get("rounds", 20))
    part = _batch(str(arguments["dataset"]), int(arguments["graphs"]), seed).to(device)
    assert part.target is not None
    objective = Classes(int(part.target.max()) + 1)
    models: dict[str, Predictor] = {}
    calls: dict[str, Call] = {}
    for name in CONTENDERS:
        torch.manual_seed(seed)
        settings = replace(PAPER_NETWORK, conv="gcn", identity=_IDENTITY[name])
        model = make_predictor(settings, "graph", part.x.size(1), objective.num_outputs, None).to(device)
        models[name], calls[name] = model, _call(model, _ready(model, part, ego=name.endswith("-ego")), part, objective)
    result: dict[str, Any] = {
        "device": device,
        "threads": torch.get_num_threads(),
        "nodes": part.x.size(0),
        "num_parameters": {name: num_parameters(model) for name, model in models.items()},
        "width": {name: model.settings["encoder"]["hidden_channels"] for name, model in models.items()},
    }
    for column in PASSES:
        backward = column != "forward"
        result[column] = _figures(_take_turns(calls, backward, rounds, device))
        if device.startswith("cuda"):
            replayed = {name: _replayed(call) for name, call in calls.items()}
            for name, figures in _figures(_take_turns(replayed, backward, rounds, device)).items():
                result[column][name] |= {f"replayed_{figure}": value for figure, value in figures.items()}
    return result


def _figures(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "ms": 1e3 * mean(taken),
            "std": 1e3 * stdev(taken),
            "ratio": median(ours / plain for ours, plain in zip(taken, times["gcn"], strict=True)),
        }
        for name, taken in times.items()
    }


def _batch(dataset: str, number: int, seed: int) -> QuerySet:
    graphs = load(dataset).graphs
    if not 0 < number <= len(graphs):
        raise ValueError(f"graphs is {number}, expected a number from 1 to {len(graphs)}, the graphs of {dataset}.")
    chosen = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(seed))[:number].tolist()
    return stack("graph", [graphs[i] for i in chosen], None, [labeled_queries(graphs[i], _TASK).target for i in chosen])


def _ready(model: Predictor, part: QuerySet, ego: bool) -> Prepared:
    """The input of a network: the batch, or for each node a copy of its ego network (Algorithm 1)."""
    encoder = model.encoder
    if not ego or encoder.identity == "full":
        return encoder.prepare(part.x, part.edge_index, engine="ego" if ego else None)
    plain = encoder.prepare(part.x, part.edge_index)
    rows = ego_networks(Data(edge_index=part.edge_index, num_nodes=part.x.size(0)), encoder.num_layers)
    rows = replace(rows, colored=torch.zeros_like(rows.colored))
    return replace(plain, plan=whole(rows, encoder.num_layers, part.edge_index.size(1)))


def _call(model: Predictor, ready: Prepared, part: QuerySet, objective: Classes) -> Call:
    target = part.target
    assert target is not None

    def call(backward: bool) -> Tensor:
        out: Tensor = model(ready, part.owner, part.num_graphs)
        if backward:
            model.zero_grad()
            objective.loss(out, target).backward()
        return out.detach()

    return call


def _replayed(call: Call) -> Call:
    recorder = CudaGraphCache()
    return lambda backward: recorder.run(backward, lambda: backward, call)


def _take_turns(
    calls: dict[str, Call], backward: bool, rounds: int, device: str, warm_up: int = 2
) -> dict[str, list[float]]:
    """Seconds of every contender in every round, until the GPU has finished."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    with torch.set_grad_enabled(backward):
        for round_ in range(-warm_up, rounds):
            for name, call in calls.items():
                _wait(device)
                start = time.perf_counter()
                call(backward)
                _wait(device)
                if round_ >= 0:
                    times[name].append(time.perf_counter() - start)
    return times


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
