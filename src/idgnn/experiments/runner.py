"""Runs many jobs side by side, and stores each record as soon as its run ends. Imports no PyTorch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from idgnn.experiments.claims import Claims
from idgnn.experiments.estimate import Estimator
from idgnn.experiments.execute import runs_alone
from idgnn.experiments.spec import RunRecord, Spec
from idgnn.experiments.store import Store

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


class Pool(Protocol):
    """Where runs are started, each with a number below that of :class:`Resources`."""

    def start(self, number: int, spec: Spec) -> None:
        """Starts a run."""
        ...

    def ended(self, timeout: float) -> list[tuple[int, RunRecord]]:
        """The numbers and records of runs that have ended, after at most this many seconds."""
        ...

    def close(self, at_once: bool) -> None:
        """Ends all processes."""
        ...


class Resources(Protocol):
    """What runs: :class:`~idgnn.experiments.worker.Workers`, or a Ray cluster."""

    @property
    def number(self) -> int:
        """How many runs there are at a time."""
        ...

    def pool(self) -> Pool:
        """Where they are started."""
        ...


def run(
    specs: Sequence[Spec],
    store: Store,
    workers: Resources,
    estimator: Estimator | None = None,
    watcher: Watcher | None = None,
    time_limit: float | None = None,
    since: int | None = None,
) -> GridState:
    """Runs all specs, and returns when they have ended or the time limit is reached.

    A run that fails, or whose process dies, is recorded with its error, and the others continue. Finished runs are
    stored however this process ends; Ctrl-C ends the current runs, and is raised again. Other processes may do the same
    with the same store: every job is run by one of them, and its result counts for all.

    Args:
        specs: In the order in which they start.
        store: Where records are appended; those that other processes append in the meantime are read.
        workers: The processes.
        estimator: Estimates the time of each run.
        watcher: Called after every change.
        time_limit: Seconds. A run that is expected to take longer does not start; started runs continue.
        since: The end of the store when it was read to find out what is missing; by default its end now.
    """
    grid = _Grid(specs, store, workers, estimator or Estimator(), watcher or Watcher(), since)
    started, ended, pool, state = time.monotonic(), False, workers.pool(), grid.state
    try:
        while True:
            left = None if time_limit is None else time_limit - (time.monotonic() - started)
            grid.take_over()
            while (spec := grid.next(left)) is not None:
                number = next(i for i in range(workers.number) if i not in state.running)
                state.waiting.remove(spec)
                pool.start(number, spec)
                state.running[number] = (spec, time.monotonic())
            state.seconds_left = _seconds_left(state, workers, grid.estimator)
            grid.watcher.update(state)
            if state.running:
                for number, record in pool.ended(_TICK):
                    store.append(record)
                    spec, _ = state.running.pop(number)
                    grid.claims.release(spec.key)
                    grid.end(spec, record)
            elif any(grid.fits(spec, left) for spec in state.waiting):  # other processes run them
                time.sleep(_TICK)
            else:
                break
        ended = True
    finally:
        pool.close(at_once=not ended)
        grid.claims.close()
    return state


class _Grid:
    """The state of a grid, shared with other processes by claims and by the store."""

    def __init__(
        self,
        specs: Sequence[Spec],
        store: Store,
        workers: Resources,
        estimator: Estimator,
        watcher: Watcher,
        since: int | None,
    ) -> None:
        self.store, self.workers, self.estimator, self.watcher = store, workers, estimator, watcher
        self.state, self.claims = GridState(list(specs)), Claims(store.folder)
        self.position = store.end() if since is None else since

    def take_over(self) -> None:
        """Counts the runs that other processes have ended."""
        records, self.position = self.store.read_since(self.position)
        for record in records:
            for spec in [each for each in self.state.waiting if each.key == record.key]:
                self.state.waiting.remove(spec)
                self.end(spec, record)

    def end(self, spec: Spec, record: RunRecord) -> None:
        """Counts a run that has ended."""
        if record.error is None:
            self.estimator.learn(record)
            self.state.finished.append(spec)
        else:
            self.state.failed.append((spec, record.error.splitlines()[0]))
        self.state.seconds_left = _seconds_left(self.state, self.workers, self.estimator)
        self.watcher.ended(spec, record)

    def fits(self, spec: Spec, left: float | None) -> bool:
        """Whether a run is expected to end within the time limit."""
        return left is None or self.estimator(spec.job).seconds <= left

    def next(self, left: float | None) -> Spec | None:
        """The first run that may start now: a worker is free, it fits into the time, and no other process has it."""
        state = self.state
        if len(state.running) >= self.workers.number or any(runs_alone(spec.job) for spec, _ in state.running.values()):
            return None
        for spec in list(state.waiting):
            if not self.fits(spec, left):
                continue
            alone = runs_alone(spec.job)
            if alone and state.running:
                return None
            if not self.claims.take(spec.key):
                if alone:  # another process measures time, perhaps on this machine
                    return None
                continue
            self.take_over()  # it may have ended just before it was free
            if spec in state.waiting:
                return spec
            self.claims.release(spec.key)
        return None


def _seconds_left(state: GridState, workers: Resources, estimator: Estimator) -> float:
    """Until all runs have ended: as if work could be shared evenly, but not before the longest current run."""
    waiting = sum(estimator(spec.job).seconds for spec in state.waiting)
    now = time.monotonic()
    running = [max(estimator(spec.job).seconds - (now - started), 0) for spec, started in state.running.values()]
    return max((waiting + sum(running)) / workers.number, *running, 0.0)
