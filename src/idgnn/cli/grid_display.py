"""A grid of runs in the terminal: what has finished, what would run, and the progress of the runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from idgnn.experiments.estimate import GIB, Estimator
from idgnn.experiments.missing_data import missing_datasets, missing_note
from idgnn.experiments.ray_pool import RayWorkers
from idgnn.experiments.runner import GridState, Watcher
from idgnn.experiments.spec import RunRecord, Spec, dataset_of
from idgnn.experiments.store import Contents
from idgnn.experiments.worker import Workers


def _names() -> list[Column]:
    """Columns of names, never cut: they are there to be copied. A column keeps its cells: each table has new ones."""
    return [Column(name, overflow="fold") for name in ("table", "column", "protocol")]


def show_grid(specs: Sequence[Spec], contents: Contents, label: str) -> None:
    """The number of runs of every column, and how many finished or failed."""
    table = RichTable(*_names(), "runs", "finished", "failed", title=label.rstrip(": ") or None)
    for name, some in _by_column(specs).items():
        keys = {spec.key for spec in some}
        finished, failed = len(keys & set(contents.finished)), len(keys & set(contents.failed))
        table.add_row(*name, str(len(keys)), str(finished), str(failed))
    console = Console()
    console.print(table)
    rows = ", ".join(dict.fromkeys(spec.row for spec in specs))
    console.print(f"Models: {rows}", highlight=False, soft_wrap=True)
    console.print("Columns may share runs; a shared run is run once.", highlight=False)


def show_plan(specs: Sequence[Spec], estimator: Estimator, workers: Workers | RayWorkers, label: str) -> None:
    """What would run, in its order, what would be downloaded, and estimates of time and memory."""
    table = RichTable(*_names(), "runs", "longest", "together", "memory")
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
        f"{memory:.1f} GiB. Estimates: {measured} from the same run with another seed on such a processor, "
        f"{len(specs) - measured} from {estimator.source}.",
        highlight=False,
        soft_wrap=True,
    )
    names = missing_datasets(specs)
    if names:
        console.print(f"{label}{missing_note(names)}", highlight=False, soft_wrap=True)


def print_skipped(specs: Sequence[Spec], label: str) -> None:
    """A line for each column whose data are missing."""
    for (table, column, protocol), some in _by_column(specs).items():
        runs = f"{len(some)} run{'s' * (len(some) != 1)}"
        print(f"{label}not run: {table} {column} {protocol}: {runs} on {dataset_of(some[0].job)}")


def _by_column(specs: Sequence[Spec]) -> dict[tuple[str, str, str], list[Spec]]:
    found: dict[tuple[str, str, str], list[Spec]] = {}
    for spec in specs:
        found.setdefault((spec.table, spec.column, spec.protocol), []).append(spec)
    return found


class GridProgress(Watcher):
    """Shows running, finished and failed runs, and an estimate of the time left. `label` starts every message."""

    def __init__(self, total: int, label: str = "") -> None:
        self.total, self.label, self.console = total, label, Console()
        self.live = Live(console=self.console, transient=True, auto_refresh=False)
        self.latest = GridState([])

    def __enter__(self) -> GridProgress:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.live.stop()

    def update(self, state: GridState) -> None:
        """Updates the live table."""
        self.latest = state
        if self.console.is_terminal:
            self.live.update(self._shown(state), refresh=True)

    def ended(self, spec: Spec, record: RunRecord) -> None:
        """Prints the result of a run."""
        took = f"({duration(record.seconds)})"
        message = f"finished {spec.name}  {_score(record)} {took}"
        if record.error is not None:
            message = f"failed   {spec.name}  {record.error.splitlines()[0]} {took}"
        count = len(self.latest.finished) + len(self.latest.failed)
        left = f"about {duration(self.latest.seconds_left)} left" if self.latest.seconds_left else ""
        progress = "" if self.console.is_terminal else f"  [{count}/{self.total}] {left}"
        self.console.print(f"{self.label}{message}{progress}", markup=False, highlight=False, soft_wrap=True)

    def _shown(self, state: GridState) -> Group:
        now, finished, failed = time.monotonic(), len(state.finished), len(state.failed)
        counts = f"{finished} finished, {failed} failed, {len(state.running)} running, {len(state.waiting)} waiting"
        table = RichTable("running", "since")
        for spec, started in state.running.values():
            table.add_row(spec.name, duration(now - started))
        late = bool(state.running) and not state.seconds_left
        left = "longer than estimated" if late else f"about {duration(state.seconds_left)} left (an estimate)"
        return Group(table, Text(f"{self.label}{counts}; {left}"))


def duration(seconds: float) -> str:
    """In seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _score(record: RunRecord) -> str:
    result = record.result or {}
    metric = result.get("metric", "")
    return f"{metric} {result['valid'][metric]:.4f}" if metric in result.get("valid", {}) else "measured"
