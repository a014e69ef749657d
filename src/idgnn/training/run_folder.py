"""The folder of a run, written so that nothing is lost when the process is killed. Imports no PyTorch."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from idgnn.training.environment import versions
from idgnn.training.run_settings import RunSettings
from idgnn.writing import remove_leftovers, write_text

RUN, METRICS, CHECKPOINT, PREDICTIONS = "run.json", "metrics.jsonl", "checkpoint.safetensors", "predictions.csv"
CHECKSUM = "checksum"  # of all else in run.json
LOCK = ".lock"  # exists before the run begins


class ChangedRecordWarning(UserWarning):
    """The `run.json` of a run is not as the run wrote it."""


@dataclass(frozen=True)
class Epoch:
    """The result of one pass over the training graphs: a line of `metrics.jsonl`."""

    epoch: int
    loss: float
    lr: float
    batch_size: int
    steps: int
    seconds: float
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of every held-out part; empty if the epoch was not evaluated."""

    as_dict = asdict


class RunFolder:
    """`run.json` (settings, versions, dataset, result) and `metrics.jsonl` (a line per epoch) in one folder.

    The weights are beside them: `checkpoint.safetensors` during the run, `model.safetensors` after it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def checkpoint(self) -> Path:
        """The state after the last epoch."""
        return self.path / CHECKPOINT

    def exists(self) -> bool:
        """Whether a run was started here."""
        return (self.path / RUN).is_file()

    def begin(self, settings: RunSettings, dataset: dict[str, Any], task: dict[str, Any]) -> None:
        """Writes what is known before the first epoch. A folder that holds a run is refused."""
        if self.exists():
            raise ValueError(f"{self.path} already holds a run. Continue it (--resume), or choose another folder.")
        record = {
            "settings": settings.as_dict(),
            "dataset": dataset,
            "task": task,
            "versions": versions(),
            "started": _now(),
            "finished": None,
            "result": None,
        }
        (self.path / METRICS).unlink(missing_ok=True)
        self.checkpoint.unlink(missing_ok=True)
        self._write(record)

    def read(self) -> dict[str, Any]:
        """The content of `run.json`."""
        path = self.path / RUN
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            missing = {"settings", "dataset", "task", "result"} - set(record if isinstance(record, dict) else ())
        except NotADirectoryError:
            raise ValueError(f"{self.path} is a file, expected the folder of a run. Name that folder.") from None
        except FileNotFoundError:
            if (self.path / LOCK).is_file():
                raise ValueError(
                    f"nothing was trained in {self.path} yet: there is no {RUN} in it. Start the run again, without "
                    "--resume."
                ) from None
            raise ValueError(f"there is no {RUN} in {self.path}, expected the folder of a run.") from None
        except ValueError as error:
            raise ValueError(f"{path} is not a file that a run writes: {error}.") from None
        if missing:
            raise ValueError(f"{path} is not a file that a run writes: it has no {', '.join(sorted(missing))}.")
        if record.pop(CHECKSUM, None) != _checksum(record):
            warnings.warn(
                f"{path} was changed after the run wrote it: what it says need not be what was trained. Undo the "
                "change, or train again.",
                ChangedRecordWarning,
                stacklevel=3,
            )
        return record

    def settings(self) -> RunSettings:
        """The settings of the run."""
        return RunSettings.from_dict(self.read()["settings"])

    def add(self, epoch: Epoch) -> None:
        """Appends a line to `metrics.jsonl`."""
        with (self.path / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(epoch.as_dict()) + "\n")

    def epochs(self) -> list[Epoch]:
        """All epochs that were written; an incomplete last line is ignored."""
        path = self.path / METRICS
        if not path.is_file():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # the rest after the last end of line is incomplete
        found = []
        for number, line in enumerate(lines, start=1):
            try:
                found.append(Epoch(**json.loads(line)))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}:{number} is not a line that a run writes: {error}.") from None
        return found

    def discard_after(self, epoch: int) -> list[Epoch]:
        """Removes the lines of epochs that will be repeated because they were not saved; returns the others."""
        kept = [each for each in self.epochs() if each.epoch <= epoch]
        write_text(self.path / METRICS, "".join(json.dumps(each.as_dict()) + "\n" for each in kept))
        return kept

    def finish(self, result: dict[str, Any]) -> None:
        """Writes the result, and deletes the checkpoint."""
        self._write(self.read() | {"finished": _now(), "result": result})
        self.checkpoint.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Makes the folder, and keeps other processes from writing to it, if the system has file locks."""
        with locked(self.path, self.exists):
            yield

    def _write(self, record: dict[str, Any]) -> None:
        write_text(self.path / RUN, json.dumps(record | {CHECKSUM: _checksum(record)}, indent=2) + "\n")


@contextmanager
def locked(folder: Path, is_begun: Callable[[], bool]) -> Iterator[None]:
    """Makes the folder of a run, and keeps other processes from writing to it, if the system has file locks.

    If no run was begun in it by the end of the block, nothing is left behind.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"{folder} cannot be made a folder for the run: {reason}.") from None
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder / LOCK).open("w") as file:  # the system releases the lock however the process ends
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"another process is training in {folder}. Wait for it, or use another.") from None
        remove_leftovers(folder)
        try:
            yield
        finally:
            if not is_begun():
                (folder / LOCK).unlink(missing_ok=True)
                with suppress(OSError):
                    folder.rmdir()


def _checksum(record: dict[str, Any]) -> str:
    """Of the values alone, so that a file that is only formatted in another way is the same."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
