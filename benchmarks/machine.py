"""Where and with what a figure was measured, and processes to measure in."""

from __future__ import annotations

import datetime
import platform
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ParamSpec, TypeVar

import torch
from torch import multiprocessing

from idgnn.training.processor import processor

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def describe(device: str = "cpu") -> dict[str, Any]:
    """Date, machine and versions."""
    machine: dict[str, Any] = {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "system": platform.system(),
    }
    if device.startswith("cuda"):
        machine["gpu"] = torch.cuda.get_device_name(device)
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine,
        "versions": {name: _version(name) for name in ("idgnn", "torch", "torch-geometric")}
        | {"python": platform.python_version()},
    }


def in_own_process(function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
    """What a function returns in a fresh process: peak memory is that of a process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(function, *args, **kwargs).result()


def peak_gib() -> float:
    """The most memory that this process has had, in GiB (Linux counts that of its parent at the start, too)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "checkout"
