"""The progress of many runs: a live table on a terminal, and a line for each run that ends."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from idgnn.experiments.runner import GridState, Watcher
from idgnn.experiments.spec import RunRecord, Spec


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
