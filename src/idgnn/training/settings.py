"""A whole run as one value; its JSON form is what a run folder keeps. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from idgnn.graphs.settings import FileSource, Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.options import TrainOptions


@dataclass(frozen=True)
class RunSettings:
    """What is trained on what, and how."""

    data: str | FileSource
    """The name of a dataset, or files; `"python"` for graphs that were handed over in Python."""
    task: TaskSettings
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainOptions = field(default_factory=TrainOptions)
    selection: Selection = field(default_factory=Selection)
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for a JSON file."""
        values = asdict(self)
        if isinstance(self.data, FileSource):
            values["data"] = {
                name: str(value) if isinstance(value, Path) else value for name, value in values["data"].items()
            }
        return values

    @staticmethod
    def from_dict(values: dict[str, Any]) -> RunSettings:
        """From what :meth:`as_dict` gave, also after a round through JSON."""
        try:
            data = values["data"]
            return RunSettings(
                data if isinstance(data, str) else _files(data),
                TaskSettings(**_known(TaskSettings, values["task"])),
                ModelSettings(**_known(ModelSettings, values["model"])),
                _training(values["training"]),
                Selection(**_known(Selection, values["selection"])),
                values["seed"],
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"the settings of the run are not complete: {error!r}. Start it again.") from None


def _training(values: dict[str, Any]) -> TrainOptions:
    known = _known(TrainOptions, values)
    return TrainOptions(**{**known, "fanout": tuple(known.get("fanout", ()))})


def _files(values: dict[str, Any]) -> FileSource:
    paths = {name: None if values[name] is None else Path(values[name]) for name in ("edges", "nodes", "graphs")}
    return FileSource(**{**values, **paths, "ignore": tuple(values["ignore"])})


def _known(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """Refuses settings that this version does not have, rather than run with others than were meant."""
    unknown = set(values) - {each.name for each in fields(kind)}
    if unknown:
        raise ValueError(
            f"the run has settings {sorted(unknown)} that this version of idgnn does not know. Use the version that "
            "run.json names."
        )
    return values
