"""What all benchmarks share: times that can be compared, processes to measure in, and records of the figures.

Contenders take turns in one run, so that other work on the machine slows all of them.
"""

from __future__ import annotations

import datetime
import json
import platform
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, ParamSpec, TypeVar

import torch
from rich.console import Console
from rich.table import Table
from torch import multiprocessing

from idgnn.training.environment import processor
from idgnn.writing import write_text

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Figure:
    """One measured figure, beside its target if it has one."""

    name: str
    value: float
    unit: str
    target: str = ""
    met: bool = True


def at_most(name: str, value: float, limit: float, unit: str) -> Figure:
    """A figure with an upper limit."""
    return Figure(name, value, unit, f"<= {limit:g}", value <= limit)


def at_least(name: str, value: float, limit: float, unit: str) -> Figure:
    """A figure with a lower limit."""
    return Figure(name, value, unit, f">= {limit:g}", value >= limit)


Clock = Callable[[], float]


def seconds(call: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Seconds of one call by a clock: wall-clock ones, or with `time.process_time` those of this process alone."""
    start = clock()
    call()
    return clock() - start


def take_turns(
    contenders: dict[str, Callable[[], object]], rounds: int, warm_up: int = 1, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of every contender in every round."""
    for _ in range(warm_up):
        for call in contenders.values():
            call()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            times[name].append(seconds(call, clock))
    return times


def ratio(times: dict[str, list[float]], slow: str, fast: str) -> float:
    """How many times longer one contender takes than another: the median over the rounds."""
    return median(a / b for a, b in zip(times[slow], times[fast], strict=True))


def in_own_process(function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
    """What a function returns in a new process, for peak memory is that of a process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(function, *args, **kwargs).result()


def peak_gib() -> float:
    """The most memory that this process has had, in GiB (on Linux not less than its parent had when it started)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


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


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "checkout"


def show(figures: list[Figure], title: str) -> None:
    """Prints a table."""
    table = Table("what", "measured", "target", "", title=title)
    for figure in figures:
        target = f"{figure.target} {figure.unit}" if figure.target else ""
        mark = "" if not figure.target else "[green]met[/]" if figure.met else "[red]missed[/]"
        table.add_row(figure.name, f"{figure.value:.2f} {figure.unit}", target, mark)
    Console().print(table)


def write_record(
    path: Path | None, figures: list[Figure] | list[dict[str, Any]], device: str = "cpu", **more: Any
) -> None:
    """Writes figures as JSON, with date, machine and versions; nothing where there is no path."""
    if path is not None:
        found = [asdict(each) if isinstance(each, Figure) else each for each in figures]
        write_text(path, json.dumps(describe(device) | more | {"figures": found}, indent=2) + "\n")
