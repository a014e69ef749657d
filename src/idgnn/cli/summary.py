"""What came of one or several runs: a table, a picture, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

from rich.console import Console
from rich.table import Table

from idgnn.training.trained import Run

PICTURE = "curves.png"


def show_runs(runs: Sequence[Run]) -> None:
    """Prints the metrics of all runs, draws their learning curves, and names the folders."""
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
    """Loss and the metric that counts over the epochs."""
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
