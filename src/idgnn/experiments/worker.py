"""The processes that run jobs, one after another each. Imports PyTorch in those processes alone."""

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
from multiprocessing.connection import Connection
from typing import Any, Literal

from idgnn.experiments.execute import attempt, machine_of, needs_all
from idgnn.experiments.record import Record
from idgnn.experiments.spec import Spec, job_as_dict

_PER_GPU = 12  # processes: more of them make an H200 no faster


@dataclass(frozen=True)
class Workers:
    """How many processes there are, and where: they are dealt to the devices in turn."""

    number: int = 1
    devices: tuple[str, ...] = ("cpu",)
    threads: int = 1
    """Cores that each of them uses."""
    start: Literal["spawn", "fork"] = "spawn"
    """How they begin; CUDA needs spawn."""

    @property
    def side_by_side(self) -> int:
        """How many share a device."""
        return -(-self.number // len(self.devices))


def workers_on(device: str, number: int | None = None) -> Workers:
    """As many processes as do well there: on all GPUs for `cuda`, and for `auto` if there are any."""
    import torch

    from idgnn.training.processes import choose_device

    gpus = torch.cuda.device_count() if device in ("auto", "cuda") else 0
    devices = tuple(f"cuda:{i}" for i in range(gpus)) or (str(choose_device(device)),)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if devices[0].startswith("cuda"):
        return Workers(number or min(_PER_GPU * len(devices), max(cores - 1, 1)), devices)
    number = number or max(cores // 2, 1)
    asked = os.environ.get("OMP_NUM_THREADS", "")
    most = int(asked) if asked.isdigit() and int(asked) else cores
    return Workers(number, devices, min(max(cores // number, 1), most))


class Worker:
    """One process, seen from the one that started it, and the run that it has."""

    def __init__(self, number: int, workers: Workers) -> None:
        self.number = number
        self.spec: Spec | None = None
        self.began = 0.0
        context: Any = multiprocessing.get_context(workers.start)
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        device = workers.devices[number % len(workers.devices)]
        arguments = (theirs, device, workers.threads, workers.side_by_side)
        self.process = context.Process(target=work, args=arguments, daemon=True)
        with _without_interrupts():
            self.process.start()
        theirs.close()  # so that our end says so when the process is gone

    def give(self, spec: Spec) -> None:
        """Lets it begin."""
        self.spec, self.began = spec, time.monotonic()
        with contextlib.suppress(OSError):  # it died since; that is noticed when its answer is read
            self.pipe.send(spec.job)

    def answer(self) -> Record:
        """The record of the run, or one that says that the process died."""
        assert self.spec is not None
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            error = f"the process died with exit code {self.process.exitcode}: killed, out of memory, or a crash"
            seconds = round(time.monotonic() - self.began, 3)
            return Record(self.spec.key, job_as_dict(self.spec.job), None, error, seconds, "", now)

    def end(self, at_once: bool) -> None:
        """Ends the process, and waits until it is gone."""
        if at_once:
            self.process.kill()
        else:
            with contextlib.suppress(OSError):
                self.pipe.send(None)
        self.process.join()
        self.pipe.close()


def work(jobs: Connection, device: str, threads: int, side_by_side: int) -> None:
    """A worker process: takes jobs from the connection and sends records back, until `None` comes or nobody is there.

    What there is to say is in the records, and the terminal belongs to the process that started this one.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read by the libraries when they are imported
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent decides
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(threads)
    cuda = device.startswith("cuda")
    if cuda:
        torch.cuda.set_device(device)
    machine, alone = machine_of(device, side_by_side), machine_of(device, 1)
    try:
        while (job := jobs.recv()) is not None:
            jobs.send(attempt(job, device, alone if needs_all(job) else machine))
            gc.collect()
            if cuda:
                torch.cuda.empty_cache()  # for the other processes
    except (EOFError, OSError):
        pass


def _end_with(parent: int) -> None:
    """Ends the process when its parent is gone, even if it was killed: nobody would read what it finds."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process that begins in here is deaf to Ctrl-C from its first moment."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
