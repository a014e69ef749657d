"""Jobs on a Ray cluster. Imports Ray when it is used, not before."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any

from idgnn.experiments.execute import attempt, machine_of, runs_alone
from idgnn.experiments.spec import Job, RunRecord, Spec, job_as_dict

_PER_GPU = 12  # as without Ray
_RETRIES = 2  # of a run whose worker or machine died; a run that raises is recorded
_ENVIRONMENT = ("IDGNN_DATA", "IDGNN_CACHE")


@dataclass(frozen=True)
class RayWorkers:
    """How many runs a Ray cluster takes at a time, and what each of them is given."""

    number: int
    gpus: float = 0.0
    """The share of a GPU of each run, such as 1/12; 0 is a CPU."""
    threads: int = 1
    """Cores of each run."""

    @property
    def devices(self) -> tuple[str, ...]:
        """What a run is trained on."""
        return ("cuda",) if self.gpus else ("cpu",)

    @property
    def side_by_side(self) -> int:
        """How many runs share a GPU; of a CPU, how many there are."""
        return round(1 / self.gpus) if self.gpus else self.number

    def pool(self) -> RayPool:
        """Where the runs are started."""
        return RayPool(self)


def ray_workers(address: str = "", number: int | None = None, device: str = "auto") -> RayWorkers:
    """Connects to a cluster, and finds out how many runs it takes at a time.

    Args:
        address: Of the cluster, such as `ray://host:10001` or `auto`. Empty: that of RAY_ADDRESS, or one that runs on
            this machine, or else a new one on this machine alone.
        number: Runs at a time; by default one for each core, on GPUs up to 12 for each.
        device: `cpu`, `cuda`, or `auto`, which takes the GPUs of the cluster if there are any.
    """
    ray = imported_ray()
    if not ray.is_initialized():
        try:
            ray.init(address=address or None, log_to_driver=False, logging_level="error")
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = f"at {address!r}" if address else "on this machine"
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"there is no Ray cluster {where}: {first} Start one with ray start --head.") from None
    found = ray.cluster_resources()
    cores, gpus = int(found.get("CPU", 0)), int(found.get("GPU", 0))
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device is {device!r}, but Ray chooses the device of each run. Use cpu, cuda or auto.")
    if device == "cuda" and not gpus:
        raise ValueError("device is cuda, but the Ray cluster has no GPU. Use cpu, or auto to choose.")
    if gpus and device != "cpu":
        number = number or min(_PER_GPU * gpus, max(cores, 1))
        return RayWorkers(number, 1 / max(-(-number // gpus), 1))
    number = number or max(cores, 1)
    return RayWorkers(number, threads=max(cores // number, 1))


def imported_ray() -> Any:
    """Ray, or a sentence that says how to install it."""
    try:
        import_module("ray.exceptions")
        return import_module("ray")
    except ImportError:
        raise ValueError("--ray needs a package: pip install 'idgnn[ray]'.") from None


class RayPool:
    """Runs on a Ray cluster: Ray finds the machine, and starts a run again if its worker or machine dies."""

    def __init__(self, workers: RayWorkers) -> None:
        self.ray, self.workers = imported_ray(), workers
        options = {"num_cpus": workers.threads, "num_gpus": workers.gpus, "max_retries": _RETRIES}
        self._attempt: Any = self.ray.remote(remote_attempt).options(**options)
        self._runs = dict[Any, tuple[int, Spec, float]]()

    def start(self, number: int, spec: Spec) -> None:
        """Starts a run, which has this number."""
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        workers = self.workers
        run = self._attempt.remote(spec.job, workers.devices[0], workers.threads, workers.side_by_side, environment)
        self._runs[run] = (number, spec, time.monotonic())

    def ended(self, timeout: float) -> list[tuple[int, RunRecord]]:
        """The numbers and records of runs that have ended, after at most this many seconds."""
        ready, _ = self.ray.wait(list(self._runs), num_returns=1, timeout=timeout)
        found = []
        for run in ready:
            number, spec, started = self._runs.pop(run)
            try:
                record = self.ray.get(run)
            except self.ray.exceptions.RayError as error:
                now = datetime.now().astimezone().isoformat(timespec="seconds")
                said = f"{type(error).__name__}: the worker died {_RETRIES + 1} times\n\n{error}"
                seconds = round(time.monotonic() - started, 3)
                record = RunRecord(spec.key, job_as_dict(spec.job), None, said, seconds, "", now)
            found.append((number, record))
        return found

    def close(self, at_once: bool) -> None:
        """Cancels the runs that have not ended, and leaves the cluster."""
        for run in self._runs:
            self.ray.cancel(run, force=True)
        self._runs.clear()
        self.ray.shutdown()


def remote_attempt(job: Job, device: str, threads: int, side_by_side: int, environment: dict[str, str]) -> RunRecord:
    """Runs a job in a worker of Ray, which has made its GPU the only one that is visible."""
    os.environ.update(environment)
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(threads)
    record = attempt(job, device, machine_of(device, 1 if runs_alone(job) else side_by_side))
    if device.startswith("cuda"):
        torch.cuda.empty_cache()  # for the other processes
    return record
