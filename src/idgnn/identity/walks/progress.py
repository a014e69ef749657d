"""How far a long count is, and how long it will still take: a bar on a terminal, or else a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

_SECONDS = 10.0  # between two lines where there is no terminal; shorter work prints none

Done = Callable[[float], None]


@contextmanager
def shown_progress(description: str, total: float, show: bool) -> Iterator[Done]:
    """Gives a function to call with the cost of each finished part; all parts together cost `total`."""
    if not show:
        yield lambda cost: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(description, total=total)
            yield lambda cost: bar.advance(task, cost)
    else:
        yield _Lines(description, total)


class _Lines:
    def __init__(self, description: str, total: float) -> None:
        self.description, self.total, self.finished = description, total, 0.0
        self.start = self.printed = perf_counter()

    def __call__(self, cost: float) -> None:
        self.finished += cost
        now = perf_counter()
        if now - self.printed < _SECONDS or not 0 < self.finished < self.total:
            return
        self.printed = now
        left = (now - self.start) * (self.total - self.finished) / self.finished
        share = self.finished / self.total
        print(
            f"{self.description}: {share:.0%} after {now - self.start:.0f} s, about {left:.0f} s left", file=sys.stderr
        )
