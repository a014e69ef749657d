"""The name of a run's folder: what is trained, what differs from the defaults, seed and time."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from idgnn.cli.tables import TableOptions
from idgnn.graphs.sources import FileSource
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings

if TYPE_CHECKING:
    from idgnn.training.relational import RelationalSettings

LONGEST_NAME = 150  # of a folder, without seed and time; file systems take 255
NOT_IN_NAMES = ("conv", "identity", "device", "workers", "compile", "cuda_graphs")  # there already, or no matter


def new_folder(runs: Path, settings: RunSettings) -> Path:
    """A folder of its own, named after what is trained and the options that are not at their defaults."""
    data = settings.data.edges.stem if isinstance(settings.data, FileSource) else settings.data
    label = settings.data.label if isinstance(settings.data, FileSource) else None
    model = f"{settings.model.conv}-{settings.model.identity}"
    parts = [data, *([] if label is None else [label]), settings.task.name, model, *_changes(settings)]
    return unique_folder(runs, parts, settings.seed)


def unique_folder(runs: Path, parts: list[str], seed: int) -> Path:
    """A folder that no other process chooses, even in the same second."""
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = re.sub(r"[^\w.@=+-]+", "-", "_".join(parts))[:LONGEST_NAME]
    return runs / f"{name}_seed{seed}_{now}-{secrets.token_hex(4)}"


def _changes(settings: RunSettings) -> Iterator[str]:
    """The options that are not at their defaults, as `lr=0.001`."""
    default = RunSettings(settings.data, TaskSettings(name=settings.task.name, features="auto"))
    for kind in ("task", "model", "training", "selection"):
        given, usual = asdict(getattr(settings, kind)), asdict(getattr(default, kind))
        for name, value in given.items():
            if value != usual[name] and name not in NOT_IN_NAMES:
                yield f"{name}={'-'.join(map(str, value)) if isinstance(value, tuple | list) else value}"


def table_changes(settings: RelationalSettings, tables: TableOptions) -> Iterator[str]:
    """The same of a run on tables, under the names of the options."""
    default = replace(type(settings)(), identity=settings.identity, seed=settings.seed)
    options = {"num_layers": "layers", "hidden_channels": "width", "select": "keep"}
    for name, value in asdict(settings).items():
        if value != getattr(default, name):
            yield f"{options.get(name, name)}={value}"
    if tables.columns != TableOptions.columns:
        yield f"columns={tables.columns}"
