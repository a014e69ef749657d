"""One run of an experiment, and the key that its result is kept under. Imports no PyTorch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from typing import Any, Literal

from idgnn.training.run_settings import RunSettings

Protocol = Literal["text", "released"]
"""`text` follows the paper, and the released code where it is silent; `released` follows the released settings."""

Variant = Literal["idgnn", "released", "walks", "both-directions", "pgnn"]
"""Which network: the library's, that of the released code, ID-GNN-Fast with walk counts of pairs, ID-GNN-Full with both
directions of a pair averaged, P-GNN."""


_WHERE_IT_RUNS = ("device", "cuda_graphs", "compile", "workers")


@dataclass(frozen=True)
class TrainJob:
    """A network is trained, and measured on what was held out."""

    settings: RunSettings
    variant: Variant = "idgnn"


@dataclass(frozen=True)
class MeasureJob:
    """Something is counted or timed; which function does it, and with what."""

    name: Literal["regular-graphs", "run-time", "memory"]
    arguments: tuple[tuple[str, int | str], ...] = ()
    seed: int = 0


Job = TrainJob | MeasureJob


@dataclass(frozen=True)
class Spec:
    """A cell of a table for one seed: where it stands, and the job that fills it. Cells may share a job."""

    table: str
    column: str
    row: str
    protocol: Protocol
    seed: int
    job: Job

    @property
    def key(self) -> str:
        """Equal for equal jobs, on every machine and in every process."""
        return key_of(self.job)


def key_of(job: Job) -> str:
    """A hash of everything that a result depends on; where and how fast it was computed is not part of it."""
    return hashlib.sha256(json.dumps(job_as_dict(job), sort_keys=True).encode()).hexdigest()[:20]


def job_as_dict(job: Job) -> dict[str, Any]:
    """As plain values. What has its default is left out, so that a setting added later changes no key."""
    if isinstance(job, MeasureJob):
        return {"measure": job.name, "arguments": dict(job.arguments), "seed": job.seed}
    settings = job.settings
    training = {name: value for name, value in _changed(settings.training).items() if name not in _WHERE_IT_RUNS}
    return {
        "train": settings.data if isinstance(settings.data, str) else settings.as_dict()["data"],
        "variant": job.variant,
        "task": _changed(settings.task),
        "model": _changed(settings.model),
        "training": training,
        "selection": _changed(settings.selection),
        "seed": settings.seed,
    }


def _changed(settings: Any) -> dict[str, Any]:
    return {
        each.name: getattr(settings, each.name)
        for each in fields(settings)
        if getattr(settings, each.name) != each.default
    }
