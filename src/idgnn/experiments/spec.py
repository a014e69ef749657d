"""One run of an experiment, the key under which its result is stored, and the stored record. Imports no PyTorch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from functools import cache, cached_property
from typing import Any, Literal

from idgnn.choices import Protocol
from idgnn.graphs.catalog import find
from idgnn.graphs.raw_files import expected
from idgnn.training.run_settings import RunSettings

Variant = Literal["idgnn", "released", "walks", "both-directions", "pgnn"]
"""Which network: the library's, that of the released code, ID-GNN-Fast with walk counts of pairs, ID-GNN-Full with both
directions of a pair averaged, P-GNN."""

GENERATED = {
    "ScaleFree": "9a626ef502ff",
    "SmallWorld": "22dcf356fc00",
    "random-regular": "4a623640f627",  # of a sample: there are as many of them as there are sizes and seeds
}
"""The version of generated graphs: a checksum of the dataset. Another version of networkx may draw other graphs, so
:func:`idgnn.experiments.execute.check_generated` compares it before a network is trained."""

_WHERE_IT_RUNS = ("device", "cuda_graphs", "compile", "workers")


@dataclass(frozen=True)
class TrainJob:
    """Train a network and evaluate it on the held-out parts."""

    settings: RunSettings
    variant: Variant = "idgnn"


@dataclass(frozen=True)
class MeasureJob:
    """Count or time something: which function does it, and its arguments."""

    name: Literal["regular-graphs", "run-time", "memory"]
    arguments: tuple[tuple[str, int | str], ...] = ()
    seed: int = 0


Job = TrainJob | MeasureJob


@dataclass(frozen=True)
class Spec:
    """One cell of a table for one seed: its position, and the job that computes it. Cells may share a job."""

    table: str
    column: str
    row: str
    protocol: Protocol
    seed: int
    job: Job

    @cached_property
    def key(self) -> str:
        """Equal for equal jobs, on every machine and in every process."""
        return key_of(self.job)

    @property
    def name(self) -> str:
        """The run in messages."""
        return f"{self.table} {self.column} {self.row} {self.protocol} seed {self.seed}"


@dataclass(frozen=True)
class RunRecord:
    """The result of one job, or the error that it ended with.

    For training, `result` holds `"valid"` (and `"test"`): the metrics at the last epoch; `"best"`: the epoch with the
    best validation score and its metrics; `"curve"`: `[epoch, loss, validation score]` of every evaluated epoch;
    `"metric"`, `"num_parameters"`, `"width"`. For measurements, what the measurement returns.
    """

    key: str
    job: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None = None
    seconds: float = 0.0
    machine: str = ""
    date: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    as_dict = asdict

    @property
    def on_gpu(self) -> bool:
        """Whether the job ran on a GPU."""
        result = self.result or {}
        return "gpu_memory" in result or str(result.get("device", "")).startswith("cuda")


def key_of(job: Job) -> str:
    """A hash of everything that a result depends on; device and speed are not part of it."""
    return hashlib.sha256(json.dumps(job_as_dict(job), sort_keys=True).encode()).hexdigest()[:20]


def job_as_dict(job: Job) -> dict[str, Any]:
    """As plain values. Defaults are left out, so that an option added later changes no key."""
    if isinstance(job, MeasureJob):
        made: dict[str, Any] = {"measure": job.name, "arguments": dict(job.arguments), "seed": job.seed}
    else:
        settings = job.settings
        training = {name: value for name, value in _changed(settings.training).items() if name not in _WHERE_IT_RUNS}
        made = {
            "train": settings.data if isinstance(settings.data, str) else settings.as_dict()["data"],
            "variant": job.variant,
            "task": _changed(settings.task),
            "model": _changed(settings.model),
            "training": training,
            "selection": _changed(settings.selection),
            "seed": settings.seed,
        }
    return {**made, "data_version": data_version(job)}


def dataset_of(job: Job) -> str | None:
    """The dataset that a job reads by its name, if any; an unknown name is an error."""
    data = dict(job.arguments).get("dataset") if isinstance(job, MeasureJob) else job.settings.data
    return find(data).name if isinstance(data, str) else None


def data_version(job: Job) -> str:
    """Changes if the graphs of a job change: a checksum of its raw files, or of what its generator generates.

    Empty for a name that is in no catalog, such as `"python"`: nothing is known about these graphs.

    Example:
        >>> data_version(MeasureJob("regular-graphs"))
        '4a623640f627'
    """
    if isinstance(job, TrainJob) and not isinstance(job.settings.data, str):
        files = job.settings.data
        paths = [path for path in (files.edges, files.nodes, files.graphs) if path is not None]
        files_below = [each for path in paths for each in (sorted(path.rglob("*")) if path.is_dir() else [path])]
        return checksum(each.read_bytes() for each in files_below if each.is_file())
    if isinstance(job, MeasureJob) and job.name == "regular-graphs":
        return GENERATED["random-regular"]
    data = dict(job.arguments).get("dataset", "") if isinstance(job, MeasureJob) else job.settings.data
    return _version_of(str(data))


@cache
def _version_of(name: str) -> str:
    try:
        entry = find(name)
    except ValueError:
        return ""
    if entry.folder is None:
        return GENERATED[entry.name]
    return checksum(value.encode() for value in sorted(expected(entry).values()))


def checksum(parts: Iterable[bytes]) -> str:
    """The first 12 digits of the SHA-256 of some parts together."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:12]


def _changed(settings: Any) -> dict[str, Any]:
    return {
        each.name: getattr(settings, each.name)
        for each in fields(settings)
        if getattr(settings, each.name) != each.default
    }
