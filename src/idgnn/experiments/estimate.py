"""Estimates of time and memory of a job before it runs. Imports no PyTorch.

The time is the number of units of work of the job times the seconds per unit that recorded runs took: on the same
machine, else on other machines of the same kind (CPU or GPU). Only without any such record is a default taken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import mean, median
from typing import Any, Literal

from idgnn.experiments.peers.settings import PeerSettings
from idgnn.experiments.spec import Job, MeasureJob, PeerJob, RunRecord, job_as_dict, recorded_settings
from idgnn.graphs.catalog import CATALOG
from idgnn.training.run_settings import RunSettings

GIB = 2**30
# Nodes of a graph on average; generated graphs have 64.
_NODES = {"Cora": 2708, "CiteSeer": 3327, "ENZYMES": 33, "PROTEINS": 39, "BZR": 36, "COX2": 41, "MUTAG": 18}
_NODES |= {"PTC_MR": 14, "ogbg-molhiv": 26, "MUTAG-folds": 18, "PTC-folds": 26, "PROTEINS-folds": 39}
_NODES |= {"counting": 19, "zinc": 23, "graph8c": 8}
_START = 3.0  # seconds to read the data, compute the labels and match the width
_MEASUREMENT = 60.0  # seconds of a measurement that was never recorded
_PEER_STEP = {"cpu": 1.0, "gpu": 0.005}  # seconds of a step of all folds of a peer: right within a factor of 10
# A unit of work is a step on a GPU, where launching kernels dominates, and a node of a batch on a CPU.
_SECONDS = {"cpu": 5e-5, "gpu": 5e-3}  # per unit, without any record: right within a factor of 10
_PAIRS, _FULL = {"cpu": 3, "gpu": 2}, {"cpu": 5, "gpu": 2}  # times the work of a plain GNN on nodes or graphs
_TWO_COLORS = {"cpu": 2.5, "gpu": 1.2}  # times the work of one color
_BYTES = {"none": 40_000, "fast": 40_000, "full": 200_000}  # of memory for a node of a batch
_PREPARED = {1: 2_500, 2: 8_000}  # the same by colors for a node of the dataset and a layer, where identity is full


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes."""

    seconds: float
    memory: float
    """Of the GPU, or of the CPU where there is none."""
    measured: bool = False
    """Whether the same job with another seed or fold was measured on this machine."""


class Estimator:
    """Estimates for one machine.

    Args:
        machine: As records name it, with the number of runs side by side.
        kind: The device of the networks.
        records: Finished runs, on this machine and on others.
    """

    def __init__(
        self, machine: str = "", kind: Literal["cpu", "gpu"] = "cpu", records: Iterable[RunRecord] = ()
    ) -> None:
        self.machine = machine
        self.kind: Literal["cpu", "gpu"] = kind
        self._seconds, self._memory = dict[str, list[float]](), dict[str, float]()
        self._measurements = dict[str, list[float]]()
        self._rates: dict[bool, list[float]] = {True: [], False: []}  # by whether it is this machine
        self._rate = _SECONDS[kind]
        for record in records:
            self._add(record)
        self._set_rate()

    def __call__(self, job: Job) -> Estimate:
        """The estimate for a job."""
        same = _same_but_seed_of(job)
        if isinstance(job, MeasureJob):
            seconds, memory = mean(self._measurements.get(job.name, [_MEASUREMENT])), float(GIB)
        elif isinstance(job, PeerJob):
            seconds, memory = _START + _PEER_STEP[self.kind] * _peer_steps(job.settings), 4.0 * GIB
        else:
            seconds, memory = _START + self._rate * _work(job.settings, self.kind), _memory(job.settings)
        if same in self._seconds:
            return Estimate(mean(self._seconds[same]), self._memory.get(same, memory), True)
        return Estimate(seconds, memory)

    def learn(self, record: RunRecord) -> None:
        """Takes a finished run into account."""
        self._add(record)
        self._set_rate()

    @property
    def source(self) -> str:
        """Where the rate of jobs that were never measured comes from."""
        for here, place in ((True, "such a processor"), (False, f"other {self.kind.upper()}s")):
            if number := len(self._rates[here]):
                return f"the rate of {number} recorded run{'s' * (number != 1)} on {place}"
        return "a default rate, because no run is recorded (it may be wrong by a factor of 10)"

    def _add(self, record: RunRecord) -> None:
        here = record.machine == self.machine
        if record.result is None or not (here or record.on_gpu == (self.kind == "gpu")):
            return
        if here:
            same = _same_but_seed(record.job)
            self._seconds.setdefault(same, []).append(record.seconds)
            if "gpu_memory" in record.result:
                self._memory[same] = record.result["gpu_memory"] + GIB / 2  # of CUDA itself
        if "measure" in record.job:
            self._measurements.setdefault(record.job["measure"], []).append(record.seconds)
        settings = _settings(record.job)
        if settings is not None and record.seconds > 0:
            self._rates[here].append(max(record.seconds - _START, 0.1) / _work(settings, self.kind))

    def _set_rate(self) -> None:
        rates = self._rates[True] or self._rates[False]
        self._rate = median(rates) if rates else _SECONDS[self.kind]


def _work(settings: RunSettings, kind: Literal["cpu", "gpu"]) -> float:
    """The units of work of a training."""
    steps, nodes = _steps_and_nodes(settings)
    units = steps if kind == "gpu" else steps * nodes * _width(settings)
    units *= _PAIRS[kind] if settings.task.level == "pair" else 1
    units *= _FULL[kind] if settings.model.identity == "full" else 1
    units *= _TWO_COLORS[kind] if settings.model.colors == 2 else 1
    evaluation = 1 + 0.15 / settings.training.eval_every  # a fifth of the graphs, and no gradients
    return settings.training.epochs * units * evaluation


def _memory(settings: RunSettings) -> float:
    """Of a batch, and of the rows of all graphs, which are worked out once and kept."""
    model, nodes = settings.model, _nodes(settings)
    _, in_batch = _steps_and_nodes(settings)
    kept = model.num_layers(settings.task.level) * _PREPARED[model.colors] if model.identity == "full" else 0
    return GIB * 0.6 + in_batch * _BYTES[model.identity] * _width(settings) + nodes * kept


def _width(settings: RunSettings) -> float:
    """The cost of a width beside 256: matrix products grow with its square, sums with the width."""
    return ((settings.model.width or settings.model.budget) / 256) ** 1.5


def _steps_and_nodes(settings: RunSettings) -> tuple[int, float]:
    """The steps of an epoch, and the nodes of a batch."""
    graphs = _num_graphs(settings)
    train = max(round(graphs * 0.8), 1)
    batch = min(train, settings.training.batch_size)
    return math.ceil(train / batch), _nodes(settings) * batch / graphs


def _nodes(settings: RunSettings) -> float:
    """Of all graphs."""
    return _num_graphs(settings) * _NODES.get(_name(settings), 64)


def _num_graphs(settings: RunSettings) -> int:
    name = _name(settings)
    return settings.selection.smallest or (CATALOG[name].num_graphs if name in CATALOG else 1)


def _name(settings: RunSettings) -> str:
    return settings.data if isinstance(settings.data, str) else ""


def _peer_steps(settings: PeerSettings) -> int:
    graphs = CATALOG[settings.dataset].num_graphs if settings.dataset in CATALOG else 1
    return settings.epochs * (settings.steps or math.ceil(0.9 * graphs / settings.batch_size))


@cache  # called for every waiting run after every change
def _same_but_seed_of(job: Job) -> str:
    return _same_but_seed(job_as_dict(job))


def _same_but_seed(job: dict[str, Any]) -> str:
    """Equal for jobs that differ only in the seed or the fold."""
    task = {name: value for name, value in job.get("task", {}).items() if name != "fold"}
    return json.dumps({**job, "seed": 0, "task": task}, sort_keys=True)


def _settings(job: dict[str, Any]) -> RunSettings | None:
    """The settings of a recorded training on a dataset by name."""
    if not isinstance(job.get("train"), str):
        return None
    try:
        return recorded_settings(job)
    except (KeyError, TypeError, ValueError):  # of another version
        return None
