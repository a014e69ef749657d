"""One run of an experiment, the key under which its result is stored, and the stored record. Imports no PyTorch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, Literal

from idgnn.choices import Protocol
from idgnn.experiments.peers.settings import PeerSettings
from idgnn.graphs.catalog import find
from idgnn.graphs.raw_files import expected
from idgnn.graphs.sources import PATHS, Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions

Variant = Literal["idgnn", "released", "walks", "both-directions", "pgnn", "pgnn-original", "root", "copy-sum"]
"""Which network: the library's, that of the released code, ID-GNN-Fast with walk counts of pairs, ID-GNN-Full with both
directions of a pair averaged, P-GNN with fixed anchors, P-GNN as its authors have it, those of the expressiveness table
that read the root or the sum over its copy. :data:`idgnn.experiments.networks.NETWORKS` has their builders."""

GENERATED = {
    "ScaleFree": "9a626ef502ff",
    "SmallWorld": "22dcf356fc00",
    "random-regular": "4a623640f627",  # of a sample: there are as many of them as there are sizes and seeds
}
"""The version of generated graphs: a checksum of the dataset. Another version of networkx may draw other graphs, so
:func:`idgnn.experiments.execute.check_generated` compares it before a network is trained."""

_WHERE_IT_RUNS = ("device", "cuda_graphs", "compile", "workers", "at_once")


@dataclass(frozen=True)
class TrainJob:
    """Train a network and evaluate it on the held-out parts."""

    settings: RunSettings
    variant: Variant = "idgnn"


@dataclass(frozen=True)
class MeasureJob:
    """Count or time something: which function does it, and its arguments."""

    name: Literal["regular-graphs", "run-time", "memory", "graph8c"]
    arguments: tuple[tuple[str, int | str], ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class PeerJob:
    """Train one of the peers of Table 6 on all folds of a dataset at once.

    There is one job and one record for all folds; `fold` is the one that a cell reads from it.
    """

    settings: PeerSettings
    fold: int = 0
    seed: int = 0


Job = TrainJob | MeasureJob | PeerJob


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

    def record(self, records: Mapping[str, RunRecord]) -> RunRecord | None:
        """Its record, of a peer the part of its fold, in the form of a run on this fold alone."""
        found = records.get(self.key)
        if not isinstance(self.job, PeerJob) or found is None or found.result is None:
            return found
        shared = {name: value for name, value in found.result.items() if name != "folds"}
        folds = found.result["folds"]
        return replace(found, result={**shared, **folds[self.job.fold]}) if self.job.fold < len(folds) else None

    @property
    def name(self) -> str:
        """The run in messages."""
        return f"{self.table} {self.column} {self.row} {self.protocol} seed {self.seed}"


@dataclass(frozen=True)
class RunRecord:
    """The result of one job, or the error that it ended with.

    For training, `result` holds `"valid"` (and `"test"`): the metrics at the last epoch; `"best"`: the epoch with the
    best validation score and its metrics; `"curve"`: `[epoch, loss, validation score]` of every evaluated epoch;
    `"metric"`, `"num_parameters"`, `"width"`. For peers, what :func:`idgnn.experiments.peers.training.train_folds`
    returns, of which :meth:`Spec.record` takes one fold; for measurements, what the measurement returns.
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
    """As plain values. Options at their values in :data:`FIRST_DEFAULTS` are left out: neither an option that is added
    later nor another default changes the key of a job."""
    if isinstance(job, MeasureJob):
        made: dict[str, Any] = {"measure": job.name, "arguments": dict(job.arguments), "seed": job.seed}
    elif isinstance(job, PeerJob):
        made = {"peer": _results_of(job.settings), "seed": job.seed}
    else:
        settings = job.settings
        made = {
            "train": settings.data if isinstance(settings.data, str) else settings.as_dict()["data"],
            "variant": job.variant,
            "task": _changed(settings.task),
            "model": _changed(settings.model),
            "training": _results_of(settings.training),
            "selection": _changed(settings.selection),
            "seed": settings.seed,
        }
    return {**made, "data_version": data_version(job)}


def dataset_of(job: Job) -> str | None:
    """The dataset that a job reads by its name, if any; an unknown name is an error."""
    data = _data_of(job)
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
        paths = [path for path in (getattr(files, name) for name in PATHS) if path is not None]
        files_below = [each for path in paths for each in (sorted(path.rglob("*")) if path.is_dir() else [path])]
        return checksum(each.read_bytes() for each in files_below if each.is_file())
    if isinstance(job, MeasureJob) and job.name == "regular-graphs":
        return GENERATED["random-regular"]
    return _version_of(str(_data_of(job) or ""))


def _data_of(job: Job) -> Any:
    """The name of the dataset, or the files."""
    if isinstance(job, MeasureJob):
        return dict(job.arguments).get("dataset")
    return job.settings.dataset if isinstance(job, PeerJob) else job.settings.data


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


FIRST_DEFAULTS: dict[type, dict[str, Any]] = {
    TaskSettings: {
        "split": "random",
        "valid": 0.2,
        "test": 0.0,
        "folds": 10,
        "fold": 0,
        "inner": 0.0,
        "error": "squared",
        "patterns": (),
        "bins": 10,
        "pairs": 1000,
        "cutoff": 4,
        "supervision": 0.2,
        "metric": None,
        "class_weights": "none",
        "features": "constant",
    },
    ModelSettings: {
        "conv": "gcn",
        "identity": "full",
        "color": "message",
        "colors": 1,
        "second": "neighbors",
        "radius": 2,
        "pool": "sum",
        "residual": False,
        "act": "relu",
        "normalize": True,
        "with_self": False,
        "aggr": "max",
        "heads": 1,
        "cycle_length": 10,
        "cycle_scale": "log",
        "dropout": 0.0,
        "layers": None,
        "width": None,
        "budget": 256,
        "pair_head": "paper",
        "symmetric": False,
    },
    TrainOptions: {
        "epochs": 100,
        "batch_size": 128,
        "query_batch_size": None,
        "fanout": (),
        "workers": 0,
        "lr": 0.01,
        "schedule": "cosine",
        "weight_decay": 5e-4,
        "keep": "last",
        "eval_every": 1,
        "reestimate_batchnorm": False,
        "freeze_batchnorm": 0.0,
        "device": "auto",
        "precision": "float32",
        "reshuffle_every": 1,
        "cuda_graphs": "auto",
        "compile": False,
    },
    Selection: {"min_nodes": 0, "min_edges": 0, "smallest": None},
    PeerSettings: {
        "batches": "shuffled",
        "steps": None,
        "loss": "mean",
        "schedule": "step",
        "decay": 1.0,
        "every": 20,
        "min_lr": 0.0,
        "validate": False,
        "width": 64,
        "dropout": 0.0,
        "pool": "sum",
        "pattern": "cycle",
        "pattern_size": 6,
        "neighbors": "malkin",
        "precision": "float32",
        "folds": 10,
        "at_once": 10,
    },
}
"""The defaults when the first records were written, and of options that came later the values that change nothing.

Keys are made with them, so entries are added and never changed, whatever the defaults become. The name of a task has
none: it is always part of a key."""


def _changed(settings: Any) -> dict[str, Any]:
    first = FIRST_DEFAULTS[type(settings)]
    values = {each.name: getattr(settings, each.name) for each in fields(settings)}
    changed = {name: value for name, value in values.items() if name not in first or value != first[name]}
    # As they are when read back from JSON.
    return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}


def _results_of(settings: Any) -> dict[str, Any]:
    """Without where it runs, which changes no result."""
    return {name: value for name, value in _changed(settings).items() if name not in _WHERE_IT_RUNS}


def recorded_settings(job: dict[str, Any]) -> RunSettings:
    """The settings of a training that :func:`job_as_dict` described, on a dataset by name."""
    kinds = {"task": TaskSettings, "model": ModelSettings, "training": TrainOptions, "selection": Selection}
    made: dict[str, Any] = {name: kind(**{**FIRST_DEFAULTS[kind], **job[name]}) for name, kind in kinds.items()}
    return RunSettings(job["train"], **made, seed=job["seed"])
