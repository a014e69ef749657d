"""A grid of runs on the terminal: what it holds, what is still to be run, and its progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from idgnn.experiments.estimate import GIB, Estimator
from idgnn.experiments.needed_data import absent, dataset_of
from idgnn.experiments.record import Record
from idgnn.experiments.runner import Progress, Watcher
from idgnn.experiments.spec import Spec
from idgnn.experiments.store import Contents
from idgnn.experiments.worker import Workers


class GridProgress(Watcher):
    """Shows running, finished and failed runs and the estimated time left. Every line starts with `label`."""

    def __init__(self, total: int, label: str = "") -> None:
        self.total, self.label, self.console = total, label, Console()
        self.live = Live(console=self.console, transient=True, auto_refresh=False)
        self.latest = Progress([])

    def __enter__(self) -> GridProgress:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.live.stop()

    def update(self, progress: Progress) -> None:
        """Updates the table."""
        self.latest = progress
        if self.console.is_terminal:
            self.live.update(self._shown(progress), refresh=True)

    def ended(self, spec: Spec, record: Record) -> None:
        """Prints the outcome of a run."""
        took = f"({duration(record.seconds)})"
        said = f"done    {name_of(spec)}  {_score(record)} {took}"
        if record.error is not None:
            said = f"failed  {name_of(spec)}  {record.error.splitlines()[0]} {took}"
        count = len(self.latest.done) + len(self.latest.failed)
        left = f"about {duration(self.latest.seconds_left)} left" if self.latest.seconds_left else ""
        progress = "" if self.console.is_terminal else f"  [{count}/{self.total}] {left}"
        self.console.print(f"{self.label}{said}{progress}", markup=False, highlight=False, soft_wrap=True)

    def _shown(self, progress: Progress) -> Group:
        now, done, failed = time.monotonic(), len(progress.done), len(progress.failed)
        counts = f"{done} done, {failed} failed, {len(progress.running)} running, {len(progress.waiting)} waiting"
        table = Table("running", "since")
        for spec, began in progress.running.values():
            table.add_row(name_of(spec), duration(now - began))
        late = bool(progress.running) and not progress.seconds_left
        left = "longer than estimated" if late else f"about {duration(progress.seconds_left)} left (an estimate)"
        return Group(table, Text(f"{self.label}{counts}; {left}"))


def print_grid(specs: Sequence[Spec], contents: Contents, label: str) -> None:
    """Prints how many runs each column has, and how many are done."""
    table = Table("table", "column", "protocol", "runs", "done", "failed", title=label.rstrip(": ") or None)
    for name, some in _by_column(specs).items():
        keys = {spec.key for spec in some}
        done, failed = len(keys & set(contents.finished)), len(keys & set(contents.failed))
        table.add_row(*name, str(len(keys)), str(done), str(failed))
    console = Console()
    console.print(table)
    rows = ", ".join(dict.fromkeys(spec.row for spec in specs))
    console.print(f"Models: {rows}", highlight=False, soft_wrap=True)
    console.print("Columns may share runs; a run that is shared is run once.", highlight=False)


def print_plan(specs: Sequence[Spec], estimator: Estimator, workers: Workers, label: str) -> None:
    """Prints what would run, in order, what would be downloaded, and estimates of time and memory."""
    table = Table("table", "column", "protocol", "runs", "longest", "together", "memory")
    table.title = f"{label}what would run, the longest run, all runs together, memory of a run (estimates)"
    for name, some in _by_column(specs).items():
        each = [estimator(spec.job) for spec in some]
        seconds = [one.seconds for one in each]
        memory = f"{max(one.memory for one in each) / GIB:.1f} GiB"
        table.add_row(*name, str(len(some)), duration(max(seconds)), duration(sum(seconds)), memory)
    every = [estimator(spec.job) for spec in specs]
    measured = sum(one.measured for one in every)
    wall = max(sum(one.seconds for one in every) / workers.number, max(one.seconds for one in every))
    memory = sum(sorted((one.memory for one in every), reverse=True)[: workers.number]) / GIB
    console = Console()
    console.print(table)
    console.print(
        f"{label}{len(specs)} runs, {workers.number} side by side on {', '.join(workers.devices)} "
        f"({workers.threads} thread{'s' * (workers.threads != 1)} each): about {duration(wall)}, up to "
        f"{memory:.0f} GiB. Estimates: {measured} from runs on this machine with another seed, "
        f"{len(specs) - measured} from constants.",
        highlight=False,
        soft_wrap=True,
    )
    names = absent(specs)
    if names:
        said = f"{label}Not here, so downloaded first if possible: {', '.join(names)}."
        console.print(said, highlight=False, soft_wrap=True)


def print_left_out(specs: Sequence[Spec], label: str) -> None:
    """Prints a line for each column whose data are missing."""
    for (table, column, protocol), some in _by_column(specs).items():
        runs = f"{len(some)} run{'s' * (len(some) != 1)}"
        print(f"{label}not run: {table} {column} {protocol}: {runs} on {dataset_of(some[0].job)}")


def name_of(spec: Spec) -> str:
    """The name of a run."""
    return f"{spec.table} {spec.column} {spec.row} {spec.protocol} seed {spec.seed}"


def duration(seconds: float) -> str:
    """Rounded, with a unit."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _score(record: Record) -> str:
    result = record.result or {}
    metric = result.get("metric", "")
    return f"{metric} {result['valid'][metric]:.4f}" if metric in result.get("valid", {}) else "measured"


def _by_column(specs: Sequence[Spec]) -> dict[tuple[str, str, str], list[Spec]]:
    found: dict[tuple[str, str, str], list[Spec]] = {}
    for spec in specs:
        found.setdefault((spec.table, spec.column, spec.protocol), []).append(spec)
    return found
