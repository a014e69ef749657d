"""Times that can be compared: all contenders take turns in one run, so that a busy machine slows them all alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """One measured figure, beside its target if it has one."""

    name: str
    value: float
    unit: str
    target: str = ""
    met: bool = True

    as_dict = asdict


def at_most(name: str, value: float, limit: float, unit: str) -> Figure:
    """A figure that should not pass a limit."""
    return Figure(name, value, unit, f"<= {limit:g}", value <= limit)


def at_least(name: str, value: float, limit: float, unit: str) -> Figure:
    """A figure that should reach a limit."""
    return Figure(name, value, unit, f">= {limit:g}", value >= limit)


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def take_turns(contenders: dict[str, Callable[[], object]], rounds: int, warm_up: int = 1) -> dict[str, list[float]]:
    """Seconds of every contender in every round."""
    for _ in range(warm_up):
        for call in contenders.values():
            call()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            times[name].append(seconds(call))
    return times


def ratio(times: dict[str, list[float]], slow: str, fast: str) -> float:
    """How many times longer one contender takes than another: the median over the rounds."""
    return median(a / b for a, b in zip(times[slow], times[fast], strict=True))
