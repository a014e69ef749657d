"""Runs one job. Imports PyTorch when it does, not before."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from idgnn.experiments.spec import (
    GENERATED,
    Job,
    MeasureJob,
    PeerJob,
    RunRecord,
    TrainJob,
    checksum,
    job_as_dict,
    key_of,
)
from idgnn.graphs.catalog import find
from idgnn.training.environment import processor, versions
from idgnn.training.run_settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_geometric.data import Data

    from idgnn.graphs.dataset import Dataset
    from idgnn.tasks.problem import Problem


def execute(job: Job, device: str) -> dict[str, Any]:
    """The result of a job, as :class:`idgnn.experiments.spec.RunRecord` describes it."""
    if isinstance(job, PeerJob):
        from idgnn.experiments.peers.run import run_peer

        return run_peer(job.settings, device, job.seed)
    return _measure(job, device) if isinstance(job, MeasureJob) else _train(job, device)


def attempt(job: Job, device: str, machine: str) -> RunRecord:
    """Runs a job; an error becomes part of the record, its message in the first line and the traceback below."""
    start, result, error = time.perf_counter(), None, None
    try:
        result = execute(job, device)
    except Exception as caught:  # the other jobs continue
        error = f"{type(caught).__name__}: {caught}\n\n{''.join(traceback.format_exception(caught))}"
    seconds = round(time.perf_counter() - start, 3)
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return RunRecord(key_of(job), job_as_dict(job), result, error, seconds, machine, now, versions())


def runs_alone(job: Job) -> bool:
    """Whether a job measures time, so that nothing may run beside it."""
    return isinstance(job, MeasureJob) and job.name == "run-time"


def machine_of(device: str, side_by_side: int) -> str:
    """The device on which a time was measured, and how many runs shared it."""
    if device.startswith("cuda"):
        import torch

        name = torch.cuda.get_device_name(device)
    else:
        name = processor()
    return f"{name}, {side_by_side} run{'s' * (side_by_side != 1)} side by side"


def _train(job: TrainJob, device: str) -> dict[str, Any]:
    import torch

    from idgnn.experiments.networks import NETWORKS
    from idgnn.models.budget import num_parameters
    from idgnn.training.seeds import seed_of
    from idgnn.training.trainer import Trainer

    settings = job.settings
    problem = _problem(RunSettings(settings.data, settings.task, selection=settings.selection, seed=settings.seed))
    torch.manual_seed(seed_of(settings.seed, "weights"))
    cuda = device.startswith("cuda")
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
    options = replace(settings.training, device=device)
    model, problem = NETWORKS[job.variant](settings, problem)
    trainer = Trainer(model, problem, options, settings.seed)
    metric, curve, evaluated = problem.objective.metric, list[Any](), {}
    for epoch in trainer.epochs():
        if epoch.metrics:
            evaluated[epoch.epoch] = epoch.metrics
            curve.append([epoch.epoch, _short(epoch.loss), _short(epoch.metrics["valid"][metric])])
    best = trainer.best_epoch or trainer.epoch
    return {
        **evaluated[trainer.epoch],
        "best": {"epoch": best, **evaluated[best]},
        "curve": curve,
        **_other_curves(evaluated, metric, settings),
        "metric": metric,
        "num_parameters": num_parameters(model),
        "width": getattr(model, "settings", {}).get("encoder", {}).get("hidden_channels", settings.model.width),
        "batch_size": trainer.batch_size,  # smaller than requested if memory ran out
        **({"gpu_memory": torch.cuda.max_memory_reserved(device)} if cuda else {}),
    }


def _other_curves(evaluated: dict[int, Any], metric: str, settings: RunSettings) -> dict[str, Any]:
    """The accuracy by epoch where the metric is ROC AUC: the paper and the works beside it give it for two classes."""
    if metric == "accuracy" or not settings.task.name.endswith("classification"):
        return {}
    return {"curves": {"accuracy": [[epoch, _short(each["valid"]["accuracy"])] for epoch, each in evaluated.items()]}}


def _short(value: float) -> float:
    """As many digits as a curve can show: with all of them curves would be most of a store."""
    return float(f"{value:.5g}")


def _measure(job: MeasureJob, device: str) -> dict[str, Any]:
    if job.name == "regular-graphs":
        from idgnn.experiments.regular_graphs import measure_regular_graphs as measure
        from idgnn.graphs.synthetic import random_regular

        check_generated("random-regular", random_regular(10, num_nodes=16, degree=4))
    elif job.name == "run-time":
        from idgnn.experiments.run_time import measure_run_time as measure
    elif job.name == "graph8c":
        from idgnn.experiments.graph8c import measure_graph8c as measure
    else:
        from idgnn.experiments.memory import measure_memory as measure
    return measure(dict(job.arguments), job.seed, device)


# Jobs of one seed on the same data come one after another, so a few are enough; networks and options are not part of
# the settings, so that jobs share them.
@lru_cache(maxsize=4)
def _dataset(settings: RunSettings) -> Dataset:
    from idgnn.graphs.load import load
    from idgnn.training.train import read_data

    if isinstance(settings.data, str) and find(settings.data).name in GENERATED:
        check_generated(find(settings.data).name, load(settings.data).graphs)
    return read_data(settings)


@lru_cache(maxsize=4)
def _problem(settings: RunSettings) -> Problem:
    from idgnn.tasks.problem import make_problem

    task = type(settings.task)(name="node-classification")  # the graphs are the same for all tasks and seeds
    return make_problem(_dataset(replace(settings, task=task, seed=0)), settings.task, settings.seed)


def check_generated(name: str, graphs: Sequence[Data]) -> None:
    """Refuses generated graphs of another version: a result would be stored under the key of other data."""
    found = checksum(str((graph.num_nodes, graph["edge_index"].tolist())).encode() for graph in graphs)
    if found != GENERATED[name]:
        raise ValueError(
            f"the graphs of {name} have the checksum {found}, expected {GENERATED[name]}: networkx "
            f"{versions()['networkx']} generates other graphs than those of the tables. Install networkx 3.6.1."
        )
