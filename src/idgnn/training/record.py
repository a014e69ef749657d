"""The folder that a run leaves behind, written so that nothing is lost when the process is killed."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from idgnn.training.epoch import Epoch
from idgnn.training.settings import RunSettings
from idgnn.writing import remove_leftovers, write_text

RUN, METRICS, CHECKPOINT, PREDICTIONS = "run.json", "metrics.jsonl", "checkpoint.safetensors", "predictions.csv"
LOCK = ".lock"  # from before the run begins
_PACKAGES = ("idgnn", "torch", "torch-geometric", "torchmetrics", "networkx", "numpy")


class RunFolder:
    """`run.json` (settings, versions, dataset, result) and `metrics.jsonl` (a line an epoch) in one folder.

    The weights are beside them: `checkpoint.safetensors` while the run goes on, `model.safetensors` at its end.
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
            raise ValueError(f"{self.path} holds a run already. Go on with it (--resume), or choose another folder.")
        record = {
            "settings": settings.as_dict(),
            "dataset": dataset,
            "task": task,
            "versions": versions(),
            "started": datetime.now().astimezone().isoformat(timespec="seconds"),
            "finished": None,
            "result": None,
        }
        (self.path / METRICS).unlink(missing_ok=True)
        self.checkpoint.unlink(missing_ok=True)
        self._write(record)

    def read(self) -> dict[str, Any]:
        """What `run.json` says."""
        try:
            record = json.loads((self.path / RUN).read_text(encoding="utf-8"))
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
            raise ValueError(f"{self.path / RUN} is not what a run writes: {error}.") from None
        if missing:
            raise ValueError(f"{self.path / RUN} is not what a run writes: it has no {', '.join(sorted(missing))}.")
        return record

    def settings(self) -> RunSettings:
        """The settings of the run."""
        return RunSettings.from_dict(self.read()["settings"])

    def add(self, epoch: Epoch) -> None:
        """Adds a line, which is on its way to the disk when this returns."""
        with (self.path / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(epoch.as_dict()) + "\n")

    def epochs(self) -> list[Epoch]:
        """All epochs that are written; a last line that was cut off does not count."""
        path = self.path / METRICS
        if not path.is_file():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # behind the last end of line there is half a line
        found = []
        for number, line in enumerate(lines, start=1):
            try:
                found.append(Epoch(**json.loads(line)))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}:{number} is not what a run writes: {error}.") from None
        return found

    def forget_after(self, epoch: int) -> list[Epoch]:
        """Drops the lines of epochs that come again, because the state after them was not saved; returns the others."""
        kept = [each for each in self.epochs() if each.epoch <= epoch]
        write_text(self.path / METRICS, "".join(json.dumps(each.as_dict()) + "\n" for each in kept))
        return kept

    def finish(self, result: dict[str, Any]) -> None:
        """Writes how the run ended; its checkpoint is of no more use."""
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        self._write(self.read() | {"finished": now, "result": result})
        self.checkpoint.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps other processes from writing to the same run; where the system has no such locks, it does nothing."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"{self.path} cannot be made a folder for the run: {reason}.") from None
        try:
            import fcntl
        except ImportError:
            yield
            return
        with (self.path / LOCK).open("w") as file:  # freed by the system, however the process ends
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(f"another process is training in {self.path}. Wait for it, or use another.") from None
            remove_leftovers(self.path)
            try:
                yield
            finally:
                if not self.exists():  # it did not come to a run: nothing is left behind
                    (self.path / LOCK).unlink(missing_ok=True)
                    with suppress(OSError):
                        self.path.rmdir()

    def _write(self, record: dict[str, Any]) -> None:
        write_text(self.path / RUN, json.dumps(record, indent=2) + "\n")


def versions() -> dict[str, str]:
    """The versions of everything that a result depends on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a checkout that was not installed
            found[name] = "not installed"
    return found
