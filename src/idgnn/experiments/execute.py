"""Runs one job. Imports PyTorch when it does, not before."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from idgnn.experiments.record import Record
from idgnn.experiments.spec import Job, MeasureJob, TrainJob, job_as_dict, key_of
from idgnn.training.environment import processor, versions
from idgnn.training.run_settings import RunSettings

if TYPE_CHECKING:
    from idgnn.graphs.dataset import Dataset
    from idgnn.tasks.problem import Problem


def execute(job: Job, device: str) -> dict[str, Any]:
    """What comes of a job, as :class:`idgnn.experiments.record.Record` describes it."""
    return _measure(job, device) if isinstance(job, MeasureJob) else _train(job, device)


def attempt(job: Job, device: str, machine: str) -> Record:
    """Runs a job; an error is part of the record, its message in the first line and where it came from below."""
    start, result, error = time.perf_counter(), None, None
    try:
        result = execute(job, device)
    except Exception as caught:  # whatever it is, the other jobs go on
        error = f"{type(caught).__name__}: {caught}\n\n{''.join(traceback.format_exception(caught))}"
    seconds = round(time.perf_counter() - start, 3)
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return Record(key_of(job), job_as_dict(job), result, error, seconds, machine, now, versions())


def needs_all(job: Job) -> bool:
    """Whether a job takes times, so that nothing may run beside it."""
    return isinstance(job, MeasureJob) and job.name == "run-time"


def machine_of(device: str, side_by_side: int) -> str:
    """What a time was measured on; how many runs shared it is part of that."""
    if device.startswith("cuda"):
        import torch

        name = torch.cuda.get_device_name(device)
    else:
        name = processor()
    return f"{name}, {side_by_side} run{'s' * (side_by_side != 1)} side by side"


def _train(job: TrainJob, device: str) -> dict[str, Any]:
    import torch

    from idgnn.models.budget import num_parameters
    from idgnn.training.seeds import seed_of
    from idgnn.training.trainer import Trainer

    settings = job.settings
    problem = _problem(RunSettings(settings.data, settings.task, selection=settings.selection, seed=settings.seed))
    if job.variant == "released":
        from idgnn.experiments.released import with_returns

        problem = with_returns(settings, problem)
    torch.manual_seed(seed_of(settings.seed, "weights"))
    cuda = device.startswith("cuda")
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
    # Link prediction has new queries, so other shapes, in every epoch: there is nothing to record.
    options = replace(settings.training, device=device, cuda_graphs=cuda and settings.task.name != "link-prediction")
    model: Any = _network(job, problem)
    trainer = Trainer(model, problem, options, settings.seed)
    metric, curve, looks = problem.objective.metric, list[Any](), {}
    for epoch in trainer.epochs():
        if epoch.metrics:
            looks[epoch.epoch] = epoch.metrics
            curve.append([epoch.epoch, _short(epoch.loss), _short(epoch.metrics["valid"][metric])])
    best = trainer.best_epoch or trainer.epoch
    return {
        **looks[trainer.epoch],
        "best": {"epoch": best, **looks[best]},
        "curve": curve,
        **_other_curves(looks, metric, settings),
        "metric": metric,
        "num_parameters": num_parameters(model),
        "width": getattr(model, "settings", {}).get("encoder", {}).get("hidden_channels", settings.model.width),
        "batch_size": trainer.batch_size,  # smaller than was asked for if memory ran out
        **({"gpu_memory": torch.cuda.max_memory_reserved(device)} if cuda else {}),
    }


def _other_curves(looks: dict[int, Any], metric: str, settings: RunSettings) -> dict[str, Any]:
    """Two classes are judged by ROC AUC, but the paper and those it compares with give accuracy: that of every look."""
    if metric == "accuracy" or not settings.task.name.endswith("classification"):
        return {}
    return {"curves": {"accuracy": [[epoch, _short(each["valid"]["accuracy"])] for epoch, each in looks.items()]}}


def _short(value: float) -> float:
    """As many digits as a curve can show: all of them would be most of a store."""
    return float(f"{value:.5g}")


def _network(job: TrainJob, problem: Problem) -> Any:
    """The network of a variant."""
    settings = job.settings
    if job.variant == "idgnn":
        from idgnn.models.predictor import build

        outputs = problem.objective.num_outputs
        return build(settings.model, problem.level, problem.in_channels, outputs, problem.edge_dim)
    if job.variant == "released":
        from idgnn.experiments.released import build
    elif job.variant == "walks":
        from idgnn.experiments.walks import build
    elif job.variant == "both-directions":
        from idgnn.experiments.both_directions import build
    else:
        from idgnn.experiments.pgnn import build
    return build(settings, problem)


def _measure(job: MeasureJob, device: str) -> dict[str, Any]:
    if job.name == "regular-graphs":
        from idgnn.experiments.regular_graphs import measure
    elif job.name == "run-time":
        from idgnn.experiments.run_time import measure
    else:
        from idgnn.experiments.memory import measure
    return measure(dict(job.arguments), job.seed, device)


# Jobs of one seed on the same data come one after another, so a few are enough; networks and options are left out of
# the settings, so that jobs share them.
@lru_cache(maxsize=4)
def _dataset(settings: RunSettings) -> Dataset:
    from idgnn.training.train import read_data

    return read_data(settings)


@lru_cache(maxsize=4)
def _problem(settings: RunSettings) -> Problem:
    from idgnn.tasks.problem import make_problem

    task = type(settings.task)(name="node-classification")  # the graphs are the same for all tasks and seeds
    return make_problem(_dataset(replace(settings, task=task, seed=0)), settings.task, settings.seed)
