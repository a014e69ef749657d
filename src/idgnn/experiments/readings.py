"""How the numbers of a cell are read from the records of its runs. Imports no PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from idgnn.experiments.spec import RunRecord, Spec

Reading = Callable[[Sequence[Spec], Sequence[RunRecord | None]], list[float | None]]
"""The number of each run of a cell, from all of its runs; None where there is none."""


def last(metric: str) -> Reading:
    """A metric on the validation part at the last epoch."""
    return measured(lambda result, spec: result["valid"][metric])


def measured(value: Callable[[Mapping[str, Any], Spec], Any]) -> Reading:
    """A part of each result; a result may lack it, as CUDA graphs are not timed on a CPU."""

    def read(spec: Spec, record: RunRecord | None) -> float | None:
        try:
            found: Any = value(record.result, spec) if record is not None and record.result is not None else None
        except KeyError:
            return None
        return float(found) if _is_number(found) else None

    return lambda specs, records: [read(*each) for each in zip(specs, records, strict=True)]


def best_mean(metric: str, lower_is_better: bool = False) -> Reading:
    """A metric at the epoch with the best mean over all runs of the cell: the first such epoch."""

    def read(specs: Sequence[Spec], records: Sequence[RunRecord | None]) -> list[float | None]:
        curves = [curve(record, metric) for record in records]
        means = mean_curve([each for each in curves if each])
        epoch = (min if lower_is_better else max)(means, key=means.__getitem__, default=None)
        return [None if epoch is None else each.get(epoch) for each in curves]

    return read


def curve(record: RunRecord | None, metric: str) -> dict[int, float]:
    """A metric of the validation part by epoch.

    `result["curve"]` is of the metric of the task. Another one that a table needs, such as accuracy of two classes, is
    in `result["curves"]`, which has the same form for each metric by name.
    """
    result: dict[str, Any] = (record.result if record is not None else None) or {}
    points = result.get("curves", {}).get(metric) or (result.get("curve", ()) if metric == result.get("metric") else ())
    return {epoch: float(score) for epoch, *_, score in points if _is_number(score)}


def mean_curve(curves: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean of some curves, at the epochs that all of them have."""
    shared = [epoch for epoch in curves[0] if all(epoch in each for each in curves)] if curves else []
    return {epoch: fmean(each[epoch] for each in curves) for epoch in shared}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
