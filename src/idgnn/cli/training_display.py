"""Training on the terminal: progress of a run, and the results of finished runs with their learning curves."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import rich.progress
from rich.console import Console
from rich.table import Table

from idgnn.cli.grid_display import duration
from idgnn.models.settings import LayerOptions
from idgnn.training.callbacks import Callback
from idgnn.training.processes import command
from idgnn.training.run_folder import Epoch
from idgnn.training.trained import Run

PICTURE = "curves.png"
_LONG = 5.0  # seconds without a word


class TrainingProgress(Callback):
    """Shows a progress bar on a terminal, and otherwise a line for every tenth of the epochs."""

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
        self.metric, self.value, self.total, self.started = "", None, 0, 0.0
        self.told = False  # how long the first epoch takes
        self.task: rich.progress.TaskID | None = None

    def begin(self, record: dict[str, Any], num_parameters: int) -> None:
        """Prints what is trained."""
        dataset, settings = record["dataset"], record["settings"]
        self.metric = record["task"]["metric"]
        model, options = settings["model"], settings["training"]
        self.console.print(
            f"[bold]{dataset['name']}[/] ({dataset['graphs']} graph{'s' * (dataset['graphs'] != 1)}), "
            f"{settings['task']['name']}: {_described(model)}, "
            f"{num_parameters:,} parameters, seed {settings['seed']}",
            highlight=False,
            soft_wrap=True,
        )
        features = record["task"]["features"]
        if features["reason"]:
            self.console.print(
                f"Nodes have no features and are given --features {features['kind']}: {features['reason']}.",
                highlight=False,
                soft_wrap=True,
            )
        self.total, self.started = options["epochs"], time.monotonic()
        if self.console.is_terminal:
            self.bar.start()
            self.task = self.bar.add_task("", total=self.total, numbers="")

    def step(self, epoch: int, done: int, steps: int) -> None:
        """Moves the bar within an epoch; without one, says once how long the first epoch takes, if it takes long."""
        if self.task is not None:
            self.bar.update(self.task, completed=epoch - 1 + 0.9 * done / steps)  # evaluation is the rest
            return
        since = time.monotonic() - self.started
        if epoch == 1 and not self.told and since > _LONG:
            self.told, each = True, since / done * steps
            self.console.print(
                f"epoch 1/{self.total}: {done} of {steps} steps in {duration(since)}, about {duration(each - since)} "
                f"left of the epoch and {duration(self.total * each)} of the run",
                highlight=False,
                soft_wrap=True,
            )

    def epoch(self, epoch: Epoch) -> None:
        """Updates the bar."""
        if epoch.metrics.get("valid"):
            self.value = epoch.metrics["valid"][self.metric]
        shown = "" if self.value is None else f"{self.metric} {self.value:.4f}  "
        numbers = f"loss {epoch.loss:.4f}  {shown}{epoch.steps / max(epoch.seconds, 1e-9):.1f} steps/s"
        if self.task is not None:
            self.bar.update(self.task, completed=epoch.epoch, numbers=numbers)
        elif epoch.epoch % max(self.total // 10, 1) == 0:
            self.console.print(f"epoch {epoch.epoch}/{self.total}  {numbers}", highlight=False)

    def end(self, result: dict[str, Any] | None) -> None:
        """Removes the bar; after Ctrl-C or SIGTERM, prints how to resume the run."""
        if self.task is not None:
            self.bar.stop()
        if isinstance(sys.exception(), KeyboardInterrupt) and (self.folder / "run.json").is_file():
            self.console.print(
                f"Stopped. To continue: {command()} train --resume {self.folder}", soft_wrap=True, highlight=False
            )


def _described(model: dict[str, Any]) -> str:
    """The layer, the identity, and what differs from the defaults."""
    values = {each.name: model.get(each.name, each.default) for each in fields(LayerOptions)}
    conv, identity = values["conv"], values["identity"]
    others = [each.name for each in fields(LayerOptions) if each.name not in ("conv", "identity")]
    changed = [f"{name} {values[name]}" for name in others if values[name] != getattr(LayerOptions, name)]
    return ", ".join([conv, f"identity {identity}", *changed])


def show_runs(runs: Sequence[Run]) -> None:
    """Prints the metrics of all runs, draws their learning curves, and prints their folders."""
    console, metric = Console(), runs[0].result["metric"]
    table = Table("part", "metric", "last epoch", "best epoch on valid", title=f"{metric} counts")
    for part in (name for name in runs[0].result["last"] if name != "epoch"):
        for name in runs[0].result["last"][part]:
            bold = "[bold]" if name == metric else ""
            shown = [_numbers([run.result[which][part][name] for run in runs]) for which in ("last", "best")]
            table.add_row(part, bold + name, *(bold + text for text in shown))
    console.print(table)
    for run in runs:
        assert run.folder is not None
        draw(run, run.folder / PICTURE)
        console.print(f"{run.folder} (curves: {PICTURE})", soft_wrap=True, highlight=False)


def draw(run: Run, path: Path) -> None:
    """Draws the loss and the main metric over the epochs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    left.plot([epoch.epoch for epoch in run.epochs], [epoch.loss for epoch in run.epochs])
    left.set(xlabel="epoch", ylabel="training loss")
    metric = run.result["metric"]
    for part in run.epochs[-1].metrics:
        seen = [epoch for epoch in run.epochs if part in epoch.metrics]
        right.plot([epoch.epoch for epoch in seen], [epoch.metrics[part][metric] for epoch in seen], label=part)
    right.set(xlabel="epoch", ylabel=metric)
    right.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _numbers(values: Sequence[float]) -> str:
    spread = f" ± {stdev(values):.4f}" if len(values) > 1 else ""
    return f"{mean(values):.4f}{spread}"
