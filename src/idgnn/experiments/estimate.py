"""How long a job takes and how much memory it needs, guessed before it runs. Imports no PyTorch.

The constants were measured on one core of an AMD EPYC, and on an H200; they are good for an order of runs and for a
first guess. What has run on the same machine is known better, and corrects the guess for the rest.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import mean, median
from typing import Any, Literal

from idgnn.experiments.record import Record
from idgnn.experiments.spec import Job, MeasureJob, TrainJob, job_as_dict
from idgnn.graphs.catalog import CATALOG
from idgnn.graphs.sources import Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions

GIB = 2**30
_START = {"cpu": 3.0, "gpu": 8.0}  # seconds to read the data, make the labels and match the width
_MEASUREMENT = {"run-time": 300.0, "regular-graphs": 10.0, "memory": 30.0}  # seconds on a CPU, of which a GPU needs 0.2
# Microseconds for a node of a batch on one core: plain and Fast, then Full with each layer.
_NODE = {
    "node": {"plain": 18, "gcn": 45, "sage": 85, "gat": 100, "gin": 55},
    "graph": {"plain": 16, "gcn": 45, "sage": 105, "gat": 110, "gin": 80},
    "shortest-path": {"plain": 150, "gcn": 200, "sage": 400, "gat": 430, "gin": 280},
    "link-prediction": {"plain": 40, "gcn": 110, "sage": 250, "gat": 270, "gin": 200},
}
_NODES = {"Cora": 2708, "CiteSeer": 3327, "ENZYMES": 33, "PROTEINS": 39, "BZR": 36, "COX2": 41, "MUTAG": 18}
_NODES |= {"PTC_MR": 14, "ogbg-molhiv": 26}  # of a graph on average; those that are drawn have 64
# Milliseconds of a step on a GPU that the process has for itself, and of the GPU when processes share it.
_STEP = {"replayed": (1.5, 0.6), "launched": (16.0, 1.3)}
_BYTES = {"plain": 40_000, "full": 200_000}  # for a node of a batch


@dataclass(frozen=True)
class Estimate:
    """A guess."""

    seconds: float
    memory: float
    """In bytes: of the GPU, or of the CPU where there is none."""
    measured: bool = False
    """Whether the same job with another seed was measured on this machine."""


class Estimator:
    """Guesses for one machine.

    Args:
        machine: As records name it, with the number of runs side by side; only records of the same one are learnt from.
        kind: Where networks are.
        side_by_side: How many runs share a device.
        threads: How many cores each of them has.
        records: What was measured before.
    """

    def __init__(
        self,
        machine: str = "",
        kind: Literal["cpu", "gpu"] = "cpu",
        side_by_side: int = 1,
        threads: int = 1,
        records: Iterable[Record] = (),
    ) -> None:
        self.machine, self.kind, self.side_by_side, self.threads = machine, kind, side_by_side, threads
        self._seconds, self._memory = dict[str, list[float]](), dict[str, float]()
        self._ratios, self._factor = list[float](), 1.0
        for record in records:
            self.learn(record)

    def __call__(self, job: Job) -> Estimate:
        """The guess for a job."""
        kind, guess = _kind_of(job), self._guess(job)
        if kind in self._seconds:
            return Estimate(mean(self._seconds[kind]), self._memory.get(kind, guess.memory), True)
        return Estimate(guess.seconds * (self._factor if isinstance(job, TrainJob) else 1), guess.memory)

    def learn(self, record: Record) -> None:
        """Takes note of how long a job took, if it came to its end on this machine."""
        if record.result is None or record.machine != self.machine:
            return
        kind = _kind(record.job)
        self._seconds.setdefault(kind, []).append(record.seconds)
        if "gpu_memory" in record.result:
            self._memory[kind] = record.result["gpu_memory"] + GIB / 2  # what CUDA itself takes
        settings = _settings(record.job)
        if settings is not None and record.seconds > 0:
            self._ratios.append(record.seconds / self._guess(TrainJob(settings)).seconds)
            self._factor = median(self._ratios)

    def _guess(self, job: Job) -> Estimate:
        if isinstance(job, MeasureJob):
            return Estimate(_MEASUREMENT[job.name] * (1 if self.kind == "cpu" else 0.2), GIB)
        settings = job.settings
        steps, nodes = _steps_and_nodes(settings)
        full = settings.model.identity == "full"
        level = settings.task.name if settings.task.level == "pair" else settings.task.level
        costs = _NODE.get(level, _NODE["shortest-path"])
        width = ((settings.model.width or settings.model.budget) / 256) ** 1.5  # products and sums: between 1 and 2
        if self.kind == "cpu":
            # Threads share the work of a step, but not all of it.
            step = 1e-6 * nodes * costs[settings.model.conv if full else "plain"] * width / self.threads**0.6
        else:
            alone, shared = _STEP["launched" if settings.task.name == "link-prediction" else "replayed"]
            step = 1e-3 * max(alone, shared * self.side_by_side) * (2 if full else 1)
        looks = 1 + 0.15 / settings.training.eval_every  # a fifth of the graphs, and no gradients
        memory = GIB * 0.6 + nodes * _BYTES["full" if full else "plain"] * width
        return Estimate(_START[self.kind] + settings.training.epochs * steps * step * looks, memory)


def _steps_and_nodes(settings: RunSettings) -> tuple[int, float]:
    """The steps of an epoch, and the nodes of a batch."""
    name = settings.data if isinstance(settings.data, str) else ""
    graphs = CATALOG[name].num_graphs if name in CATALOG else 1
    graphs = settings.selection.smallest or graphs
    train = max(round(graphs * 0.8), 1)
    batch = min(train, settings.training.batch_size)
    return math.ceil(train / batch), batch * _NODES.get(name, 64)


@cache  # asked again and again while runs wait
def _kind_of(job: Job) -> str:
    return _kind(job_as_dict(job))


def _kind(job: dict[str, Any]) -> str:
    """Equal for jobs that differ in nothing but the seed or the fold."""
    task = {name: value for name, value in job.get("task", {}).items() if name != "fold"}
    return json.dumps({**job, "seed": 0, "task": task}, sort_keys=True)


def _settings(job: dict[str, Any]) -> RunSettings | None:
    """The settings that a record was made with, if it is of a training on a dataset by name."""
    if not isinstance(job.get("train"), str):
        return None
    try:
        return RunSettings(
            job["train"],
            TaskSettings(**job["task"]),
            ModelSettings(**job["model"]),
            TrainOptions(**job["training"]),
            Selection(**job["selection"]),
        )
    except (KeyError, TypeError, ValueError):  # of another version
        return None
