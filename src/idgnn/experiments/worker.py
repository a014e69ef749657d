"""Processes that run jobs one after another. Only these processes import PyTorch."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from idgnn.experiments.execute import attempt, machine_of, runs_alone
from idgnn.experiments.spec import RunRecord, Spec, job_as_dict

_PER_GPU = 12  # processes: more do not make an H200 faster


@dataclass(frozen=True)
class Workers:
    """The number of processes and their devices, which they are assigned to in turn."""

    number: int = 1
    devices: tuple[str, ...] = ("cpu",)
    threads: int = 1
    """Cores of each process."""
    start: Literal["spawn", "fork"] = "spawn"
    """How processes start; CUDA needs spawn."""

    @property
    def side_by_side(self) -> int:
        """How many processes share a device."""
        return -(-self.number // len(self.devices))

    def pool(self) -> LocalPool:
        """Where runs are started."""
        return LocalPool(self)


def workers_on(device: str, number: int | None = None) -> Workers:
    """A good number of processes for a device: on all GPUs for `cuda`, and for `auto` if there are any."""
    import torch

    from idgnn.training.processes import choose_device

    gpus = torch.cuda.device_count() if device in ("auto", "cuda") else 0
    devices = tuple(f"cuda:{i}" for i in range(gpus)) or (str(choose_device(device)),)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if devices[0].startswith("cuda"):
        return Workers(number or min(_PER_GPU * len(devices), max(cores - 1, 1)), devices)
    number = number or max(cores // 2, 1)
    given = os.environ.get("OMP_NUM_THREADS", "")
    limit = int(given) if given.isdigit() and int(given) else cores
    return Workers(number, devices, min(max(cores // number, 1), limit))


class Worker:
    """The handle of one process, and its current run."""

    def __init__(self, number: int, workers: Workers) -> None:
        self.number = number
        self.spec: Spec | None = None
        self.started = 0.0
        context: Any = multiprocessing.get_context(workers.start)
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        device = workers.devices[number % len(workers.devices)]
        arguments = (theirs, device, workers.threads, workers.side_by_side, os.getpid())
        self.process = context.Process(target=work, args=arguments, daemon=True)
        with _ignoring_interrupts():
            self.process.start()
        theirs.close()  # so that our end is closed when the process ends

    def start(self, spec: Spec) -> None:
        """Starts a run."""
        self.spec, self.started = spec, time.monotonic()
        with contextlib.suppress(OSError):  # the process died; `result` finds out
            self.pipe.send(spec.job)

    def result(self) -> RunRecord:
        """The record of the run, or one with the error that the process died."""
        assert self.spec is not None
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            error = f"the process died with exit code {self.process.exitcode}: killed, out of memory, or a crash"
            seconds = round(time.monotonic() - self.started, 3)
            return RunRecord(self.spec.key, job_as_dict(self.spec.job), None, error, seconds, "", now)

    def end(self, at_once: bool) -> None:
        """Ends the process, and waits for it."""
        if at_once:
            self.process.kill()
        else:
            with contextlib.suppress(OSError):
                self.pipe.send(None)
        self.process.join()
        self.pipe.close()


class LocalPool:
    """Runs in processes of this machine, which start when they are first needed."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._processes, self._busy = dict[int, Worker](), set[int]()

    def start(self, number: int, spec: Spec) -> None:
        """Starts a run in the process of this number."""
        if number not in self._processes:
            self._processes[number] = Worker(number, self.workers)
        self._processes[number].start(spec)
        self._busy.add(number)

    def ended(self, timeout: float) -> list[tuple[int, RunRecord]]:
        """The numbers and records of runs that have ended, after at most this many seconds."""
        busy: dict[Any, int] = {self._processes[number].pipe: number for number in self._busy}
        found = []
        for pipe in wait(list(busy), timeout=timeout):
            number = busy[pipe]
            record = self._processes[number].result()
            self._busy.remove(number)
            if record.error is not None:
                self._processes.pop(number).end(at_once=True)  # its GPU may be unusable after an error
            found.append((number, record))
        return found

    def close(self, at_once: bool) -> None:
        """Ends the processes, and waits for them."""
        for worker in self._processes.values():
            worker.end(at_once)


def work(jobs: Connection, device: str, threads: int, side_by_side: int, parent: int) -> None:
    """A worker process: receives jobs and sends records back, until it receives `None` or the connection is closed.

    It prints nothing: messages are in the records, and the terminal belongs to the parent process. Its id `parent` is
    given: a process that asks for it after the parent was killed is told that of another one.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read by the libraries when they are imported
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent decides
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(threads)
    cuda = device.startswith("cuda")
    if cuda:
        torch.cuda.set_device(device)
    machine, alone = machine_of(device, side_by_side), machine_of(device, 1)
    try:
        while (job := jobs.recv()) is not None:
            jobs.send(attempt(job, device, alone if runs_alone(job) else machine))
            gc.collect()
            if cuda:
                torch.cuda.empty_cache()  # for the other processes
    except (EOFError, OSError):
        pass


def _end_with_parent(parent: int) -> None:
    """Ends the process when its parent has ended, even if that was killed: no process would read its results."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """A process that starts in here ignores Ctrl-C from the beginning."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
