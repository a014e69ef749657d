"""A cell of a table: the result of its runs, beside the published number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from idgnn.experiments.published import Published
from idgnn.experiments.spec import RunRecord, Spec
from idgnn.report.layout import Heading

Status = Literal["above", "within", "below", "alone", "missing", "failed", "published"]
"""Compared with the published number; `alone` if there is none, `published` if it is that number itself."""

SIGN: dict[Status, str] = {
    "above": "▲", "within": "≈", "below": "▼", "alone": "", "missing": "", "failed": "✗", "published": "",
}  # fmt: skip
RULE = (
    "▲ above, ≈ within, ▼ below the published number. Within: our mean differs from it by no more than the larger of "
    "the two standard deviations, all as printed. Ours are those of a sample (n - 1), the published ones of a "
    "population (n)."
)


@dataclass(frozen=True)
class CellRun:
    """A run of a cell, its record and its number, if it has them."""

    spec: Spec
    record: RunRecord | None
    value: float | None


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation over the finished runs: `n` of `total`."""

    status: Status
    mean: float | None = None
    std: float | None = None
    n: int = 0
    total: int = 0
    published: Published | None = None
    runs: tuple[CellRun, ...] = ()
    digits: int = 3

    @property
    def complete(self) -> bool:
        """Whether every run has a number."""
        return self.n == self.total

    @property
    def number(self) -> str:
        """As printed, `0.985 ± 0.012`; or why there is none."""
        if self.mean is None:
            return "failed" if self.status == "failed" else "not run"
        spread = "" if self.std is None else f" ± {self.std:.{self.digits}f}"
        return f"{self.mean:.{self.digits}f}{spread}"

    @property
    def share(self) -> str:
        """`2 of 3` if some runs are missing; empty if all or none are."""
        return f"{self.n} of {self.total}" if 0 < self.n < self.total else ""


def make_cell(
    specs: Sequence[Spec],
    records: Mapping[str, RunRecord],
    published: Published | None,
    heading: Heading,
    digits: int = 3,
) -> Cell:
    """The cell of these runs."""
    kept = [records.get(spec.key) for spec in specs]
    runs = tuple(map(CellRun, specs, kept, _values(specs, kept, heading)))
    found = [run.value for run in runs if run.value is not None]
    if not found:
        # A measurement may lack a part: on a CPU there are no CUDA graphs.
        failed = any(record is not None and (record.error or heading.metric) for record in kept)
        return Cell("failed" if failed else "missing", None, None, 0, len(specs), published, runs, digits)
    mean, std = fmean(found), stdev(found) if len(found) > 1 else None
    status = compare(mean, std, published, digits) if heading.judged else "alone"
    return Cell(status, mean, std, len(found), len(specs), published, runs, digits)


def compare(mean: float, std: float | None, published: Published | None, digits: int) -> Status:
    """A mean beside the published one. Numbers are rounded as printed, so that a reader can check it."""
    if published is None:
        return "alone"
    difference = round(round(mean, digits) - round(published.mean, digits), digits)
    if abs(difference) <= max(round(std or 0.0, digits), round(published.std or 0.0, digits)):
        return "within"
    return "above" if difference > 0 else "below"


def best_cell(cells: Iterable[Cell]) -> Cell | None:
    """The cell with the best mean; the first of equals."""
    return max((each for each in cells if each.mean is not None), key=lambda each: each.mean or 0.0, default=None)


def curve(record: RunRecord | None, metric: str | None) -> dict[int, float]:
    """A metric of the validation part by epoch.

    `result["curve"]` is of the metric of the task. Another one that a table needs, such as accuracy of two classes, is
    in `result["curves"]`, which has the same form for each metric by name.
    """
    result: dict[str, Any] = (record.result if record is not None else None) or {}
    points = result.get("curves", {}).get(metric) or (result.get("curve", ()) if metric == result.get("metric") else ())
    return {epoch: float(score) for epoch, *_, score in points if _is_number(score)}


def _values(specs: Sequence[Spec], records: Sequence[RunRecord | None], heading: Heading) -> list[float | None]:
    """The number of each run; None if it has none."""
    if heading.at == "last":
        return [_last_value(record, spec, heading) for spec, record in zip(specs, records, strict=True)]
    curves = [curve(record, heading.metric) for record in records]
    known = [each for each in curves if each]
    shared = [epoch for epoch in known[0] if all(epoch in each for each in known)] if known else []
    # The first of the epochs with the best mean.
    epoch = max(shared, key=lambda epoch: fmean(each[epoch] for each in known), default=None)
    return [None if epoch is None else each.get(epoch) for each in curves]


def _last_value(record: RunRecord | None, spec: Spec, heading: Heading) -> float | None:
    if record is None or record.result is None:
        return None
    if heading.metric is not None:
        value = record.result.get("valid", {}).get(heading.metric)
    else:
        value: Any = record.result
        # A measurement holds a whole column, or a whole table; the key of `layers-3` is 3.
        for name in (spec.column, heading.part, spec.row, spec.row.rpartition("-")[2], heading.part):
            value = value.get(name, value) if isinstance(value, dict) else value
    return float(value) if _is_number(value) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
