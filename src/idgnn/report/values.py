"""The numbers that records hold for a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from idgnn.experiments.record import Record
from idgnn.experiments.spec import Spec
from idgnn.report.layout import Heading


def values(specs: Sequence[Spec], records: Sequence[Record | None], heading: Heading) -> list[float | None]:
    """One for each run; None if it has none."""
    if heading.at == "last":
        return [_at_last(record, spec, heading) for spec, record in zip(specs, records, strict=True)]
    curves = [curve(record, heading.metric) for record in records]
    epoch = _best_epoch([each for each in curves if each])
    return [None if epoch is None else each.get(epoch) for each in curves]


def curve(record: Record | None, metric: str | None) -> dict[int, float]:
    """A metric of the validation part by epoch.

    `result["curve"]` is of the metric that the task is judged by. Where a table asks for another one, such as accuracy
    of two classes, it is looked for in `result["curves"]`, which has the same form for each metric by name.
    """
    result: dict[str, Any] = (record.result if record is not None else None) or {}
    points = result.get("curves", {}).get(metric) or (result.get("curve", ()) if metric == result.get("metric") else ())
    return {epoch: float(score) for epoch, *_, score in points if _is_number(score)}


def _best_epoch(curves: Sequence[dict[int, float]]) -> int | None:
    """The first of the epochs with the best mean, among those that all curves have."""
    shared = [epoch for epoch in curves[0] if all(epoch in each for each in curves)] if curves else []
    return max(shared, key=lambda epoch: fmean(each[epoch] for each in curves), default=None)


def _at_last(record: Record | None, spec: Spec, heading: Heading) -> float | None:
    if record is None or record.result is None:
        return None
    if heading.metric is not None:
        value = record.result.get("valid", {}).get(heading.metric)
    else:
        value: Any = record.result
        # A measurement holds a whole column, or a whole table; `layers-3` is kept as 3.
        for name in (spec.column, heading.part, spec.row, spec.row.rpartition("-")[2], heading.part):
            value = value.get(name, value) if isinstance(value, dict) else value
    return float(value) if _is_number(value) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
