"""Many runs while they go: a live table on a terminal, and a line for each that ends."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from idgnn.experiments.record import Record
from idgnn.experiments.runner import Progress, Watcher
from idgnn.experiments.spec import Spec


class GridProgress(Watcher):
    """Shows what is running, done and failed, and how long the rest may take. `label` is in front of all it says."""

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
        """Draws the table anew."""
        self.latest = progress
        if self.console.is_terminal:
            self.live.update(self._shown(progress), refresh=True)

    def ended(self, spec: Spec, record: Record) -> None:
        """Says what came of a run."""
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


def name_of(spec: Spec) -> str:
    """How a run is called."""
    return f"{spec.table} {spec.column} {spec.row} {spec.protocol} seed {spec.seed}"


def duration(seconds: float) -> str:
    """As a person would say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _score(record: Record) -> str:
    result = record.result or {}
    metric = result.get("metric", "")
    return f"{metric} {result['valid'][metric]:.4f}" if metric in result.get("valid", {}) else "measured"
