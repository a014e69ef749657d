"""Runs many jobs side by side, and keeps each record as soon as it is there. Imports no PyTorch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from idgnn.experiments.estimate import Estimator
from idgnn.experiments.execute import needs_all
from idgnn.experiments.record import Record
from idgnn.experiments.spec import Spec
from idgnn.experiments.store import Store
from idgnn.experiments.worker import Worker, Workers

_TICK = 0.5  # seconds between two looks at the clock


@dataclass
class Progress:
    """How it stands."""

    waiting: list[Spec]
    """In the order in which they begin; at the end, those for which the time was too short."""
    running: dict[int, tuple[Spec, float]] = field(default_factory=dict)
    """The run of each worker, and when it began (:func:`time.monotonic`)."""
    done: list[Spec] = field(default_factory=list)
    failed: list[tuple[Spec, str]] = field(default_factory=list)
    """With the first line of the error."""
    seconds_left: float = 0.0
    """An estimate."""


class Watcher:
    """Told how it goes; what is not of interest is not overridden."""

    def update(self, progress: Progress) -> None:
        """After every change, and now and then when there is none."""

    def ended(self, spec: Spec, record: Record) -> None:
        """After every run."""


def run(
    specs: Sequence[Spec],
    store: Store,
    workers: Workers,
    estimator: Estimator | None = None,
    watcher: Watcher | None = None,
    time_limit: float | None = None,
) -> Progress:
    """Runs all specs, and returns when they are done or the time is up.

    A run that fails, or whose process dies, is recorded with its error, and the others go on. However this process
    ends, what is done is kept; Ctrl-C ends the runs that are under way, and is raised again.

    Args:
        specs: In the order in which they begin.
        store: Where records are added; what it holds is not looked at.
        workers: The processes.
        estimator: How long each run takes.
        watcher: Is told how it goes.
        time_limit: Seconds. No run begins that is not expected to end by then; one that is under way goes on.
    """
    estimator, watcher = estimator or Estimator(), watcher or Watcher()
    began, processes, ended = time.monotonic(), dict[int, Worker](), False
    progress = Progress(list(specs))
    try:
        while True:
            left = None if time_limit is None else time_limit - (time.monotonic() - began)
            while (spec := _next(progress, workers, estimator, left)) is not None:
                number = next(i for i in range(workers.number) if i not in progress.running)
                if number not in processes:
                    processes[number] = Worker(number, workers)
                progress.waiting.remove(spec)
                processes[number].give(spec)
                progress.running[number] = (spec, processes[number].began)
            progress.seconds_left = _seconds_left(progress, workers, estimator)
            watcher.update(progress)
            if not progress.running:
                break
            busy: dict[Any, Worker] = {processes[number].pipe: processes[number] for number in progress.running}
            for pipe in wait(list(busy), timeout=_TICK):
                worker = busy[pipe]
                record = worker.answer()
                store.append(record)
                spec, _ = progress.running.pop(worker.number)
                if record.error is None:
                    estimator.learn(record)
                    progress.done.append(spec)
                else:
                    progress.failed.append((spec, record.error.splitlines()[0]))
                    processes.pop(worker.number).end(at_once=True)  # an error may leave a GPU unusable to a process
                progress.seconds_left = _seconds_left(progress, workers, estimator)
                watcher.ended(spec, record)
        ended = True
    finally:
        for worker in processes.values():
            worker.end(at_once=not ended)
    return progress


def _next(progress: Progress, workers: Workers, estimator: Estimator, left: float | None) -> Spec | None:
    """The first run that may begin now: a worker is free, and the time that is left is expected to be enough."""
    if len(progress.running) >= workers.number or any(needs_all(spec.job) for spec, _ in progress.running.values()):
        return None
    for spec in progress.waiting:
        if left is not None and estimator(spec.job).seconds > left:
            continue
        return None if needs_all(spec.job) and progress.running else spec
    return None


def _seconds_left(progress: Progress, workers: Workers, estimator: Estimator) -> float:
    """Until all is done: as if the work could be shared evenly, but not before the longest that is under way."""
    waiting = sum(estimator(spec.job).seconds for spec in progress.waiting)
    now = time.monotonic()
    running = [max(estimator(spec.job).seconds - (now - began), 0) for spec, began in progress.running.values()]
    return max((waiting + sum(running)) / workers.number, *running, 0.0)
