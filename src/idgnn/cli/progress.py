"""A run while it goes: a bar with loss, metric, speed and time left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import rich.progress
from rich.console import Console

from idgnn.training.callbacks import Callback
from idgnn.training.processes import command
from idgnn.training.run_folder import Epoch


class Progress(Callback):
    """Shows a bar on a terminal, and now and then a line where there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.console = folder, Console()
        self.bar = rich.progress.Progress(
            rich.progress.TextColumn("epoch"),
            rich.progress.MofNCompleteColumn(),
            rich.progress.BarColumn(),
            rich.progress.TextColumn("{task.fields[numbers]}"),
            rich.progress.TimeRemainingColumn(),
            console=self.console,
            transient=True,
        )
        self.metric, self.value, self.total = "", None, 0
        self.task: rich.progress.TaskID | None = None

    def begin(self, record: dict[str, Any], num_parameters: int) -> None:
        """Says what is trained."""
        dataset, settings = record["dataset"], record["settings"]
        model, options = settings["model"], settings["training"]
        self.console.print(
            f"[bold]{dataset['name']}[/] ({dataset['graphs']} graph{'s' * (dataset['graphs'] != 1)}), "
            f"{settings['task']['name']}: {model['conv']}, identity {model['identity']}, "
            f"{num_parameters:,} parameters, seed {settings['seed']}",
            highlight=False,
            soft_wrap=True,
        )
        self.total = options["epochs"]
        if self.console.is_terminal:
            self.bar.start()
            self.task = self.bar.add_task("", total=self.total, numbers="")

    def epoch(self, epoch: Epoch) -> None:
        """Moves the bar."""
        if epoch.metrics.get("valid"):
            self.metric, self.value = next(iter(epoch.metrics["valid"].items()))
        shown = "" if self.value is None else f"{self.metric} {self.value:.4f}  "
        numbers = f"loss {epoch.loss:.4f}  {shown}{epoch.steps / max(epoch.seconds, 1e-9):.1f} steps/s"
        if self.task is not None:
            self.bar.update(self.task, completed=epoch.epoch, numbers=numbers)
        elif epoch.epoch % max(self.total // 10, 1) == 0:
            self.console.print(f"epoch {epoch.epoch}/{self.total}  {numbers}", highlight=False)

    def end(self, result: dict[str, Any] | None) -> None:
        """Takes the bar away; if the run is not finished, says how to go on."""
        if self.task is not None:
            self.bar.stop()
        if isinstance(sys.exception(), KeyboardInterrupt) and (self.folder / "run.json").is_file():
            self.console.print(
                f"Stopped. To go on: {command()} train --resume {self.folder}", soft_wrap=True, highlight=False
            )
