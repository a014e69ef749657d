"""Runs many jobs side by side, and stores each record as soon as its run ends. Imports no PyTorch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from idgnn.experiments.estimate import Estimator
from idgnn.experiments.execute import runs_alone
from idgnn.experiments.spec import RunRecord, Spec
from idgnn.experiments.store import Store
from idgnn.experiments.worker import Worker, Workers

_TICK = 0.5  # seconds between two updates


@dataclass
class GridState:
    """The state of a grid of runs."""

    waiting: list[Spec]
    """In the order in which they start; at the end, those that would have passed the time limit."""
    running: dict[int, tuple[Spec, float]] = field(default_factory=dict)
    """The run of each worker, and its start (:func:`time.monotonic`)."""
    finished: list[Spec] = field(default_factory=list)
    failed: list[tuple[Spec, str]] = field(default_factory=list)
    """With the first line of the error."""
    seconds_left: float = 0.0
    """An estimate."""


class Watcher:
    """Callbacks of :func:`run`; the defaults do nothing."""

    def update(self, state: GridState) -> None:
        """After every change, and at least every half second."""

    def ended(self, spec: Spec, record: RunRecord) -> None:
        """After every run."""


def run(
    specs: Sequence[Spec],
    store: Store,
    workers: Workers,
    estimator: Estimator | None = None,
    watcher: Watcher | None = None,
    time_limit: float | None = None,
) -> GridState:
    """Runs all specs, and returns when they have ended or the time limit is reached.

    A run that fails, or whose process dies, is recorded with its error, and the others continue. Finished runs are
    stored however this process ends; Ctrl-C ends the current runs, and is raised again.

    Args:
        specs: In the order in which they start.
        store: Where records are appended; it is not read.
        workers: The processes.
        estimator: Estimates the time of each run.
        watcher: Called after every change.
        time_limit: Seconds. A run that is expected to take longer does not start; started runs continue.
    """
    estimator, watcher = estimator or Estimator(), watcher or Watcher()
    started, processes, ended = time.monotonic(), dict[int, Worker](), False
    state = GridState(list(specs))
    try:
        while True:
            left = None if time_limit is None else time_limit - (time.monotonic() - started)
            while (spec := _next(state, workers, estimator, left)) is not None:
                number = next(i for i in range(workers.number) if i not in state.running)
                if number not in processes:
                    processes[number] = Worker(number, workers)
                state.waiting.remove(spec)
                processes[number].start(spec)
                state.running[number] = (spec, processes[number].started)
            state.seconds_left = _seconds_left(state, workers, estimator)
            watcher.update(state)
            if not state.running:
                break
            busy: dict[Any, Worker] = {processes[number].pipe: processes[number] for number in state.running}
            for pipe in wait(list(busy), timeout=_TICK):
                worker = busy[pipe]
                record = worker.result()
                store.append(record)
                spec, _ = state.running.pop(worker.number)
                if record.error is None:
                    estimator.learn(record)
                    state.finished.append(spec)
                else:
                    state.failed.append((spec, record.error.splitlines()[0]))
                    processes.pop(worker.number).end(at_once=True)  # its GPU may be unusable after an error
                state.seconds_left = _seconds_left(state, workers, estimator)
                watcher.ended(spec, record)
        ended = True
    finally:
        for worker in processes.values():
            worker.end(at_once=not ended)
    return state


def _next(state: GridState, workers: Workers, estimator: Estimator, left: float | None) -> Spec | None:
    """The first run that may start now: a worker is free, and the run is expected to end within the time limit."""
    if len(state.running) >= workers.number or any(runs_alone(spec.job) for spec, _ in state.running.values()):
        return None
    for spec in state.waiting:
        if left is not None and estimator(spec.job).seconds > left:
            continue
        return None if runs_alone(spec.job) and state.running else spec
    return None


def _seconds_left(state: GridState, workers: Workers, estimator: Estimator) -> float:
    """Until all runs have ended: as if work could be shared evenly, but not before the longest current run."""
    waiting = sum(estimator(spec.job).seconds for spec in state.waiting)
    now = time.monotonic()
    running = [max(estimator(spec.job).seconds - (now - started), 0) for spec, started in state.running.values()]
    return max((waiting + sum(running)) / workers.number, *running, 0.0)
