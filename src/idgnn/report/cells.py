"""A cell of a table: the result of its runs, beside the published number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from idgnn.experiments.grid import SEEDS
from idgnn.experiments.spec import RunRecord, Spec
from idgnn.experiments.table import Column, Published

Status = Literal["better", "within", "worse", "alone", "missing", "failed", "published"]
"""Compared with the published number; `alone` if there is none, `published` if it is that number itself."""

SIGN: dict[Status, str] = {
    "better": "▲", "within": "≈", "worse": "▼", "alone": "", "missing": "", "failed": "✗", "published": "",
}  # fmt: skip
RULE = (
    "▲ better than, ≈ within, ▼ worse than the published number. Within: our mean differs from it by no more than the "
    "larger of the two standard deviations, all as printed. Ours are those of a sample (n - 1), the published ones of "
    "a population (n)."
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
    def count(self) -> str:
        """`2 of 3` if some runs are missing, `9 seeds` if there are other ones than those of the paper."""
        if self.n < self.total:
            return f"{self.n} of {self.total}" if self.n else ""
        return f"{self.n} seeds" if any(run.spec.seed not in SEEDS for run in self.runs) else ""

    @property
    def text(self) -> str:
        """The number, and how many seeds it is a mean over if there are other ones than those of the paper."""
        return f"{self.number} ({self.count})" if self.n and self.complete and self.count else self.number

    @property
    def sign(self) -> str:
        """Of its status."""
        return SIGN[self.status]


def published_cell(number: Published, column: Column) -> Cell:
    """The cell of a published number."""
    return Cell("published", number.mean, number.std, published=number, digits=column.digits)


def make_cell(
    specs: Sequence[Spec], records: Mapping[str, RunRecord], published: Published | None, column: Column
) -> Cell:
    """The cell of these runs."""
    kept = [spec.record(records) for spec in specs]
    runs = tuple(map(CellRun, specs, kept, column.read(specs, kept)))
    found = [run.value for run in runs if run.value is not None]
    if not found:
        # A measurement may lack a part: on a CPU there are no CUDA graphs.
        failed = any(record is not None and (record.error or column.metric) for record in kept)
        return Cell("failed" if failed else "missing", None, None, 0, len(specs), published, runs, column.digits)
    mean, std = fmean(found), stdev(found) if len(found) > 1 else None
    status = compare(mean, std, published, column)
    return Cell(status, mean, std, len(found), len(specs), published, runs, column.digits)


def compare(mean: float, std: float | None, published: Published | None, column: Column) -> Status:
    """A mean beside the published one. Numbers are rounded as printed, so that a reader can check it."""
    if published is None or not column.judged:
        return "alone"
    gain, digits = column.gain(round(mean, column.digits), round(published.mean, column.digits)), column.digits
    if abs(round(gain, digits)) <= max(round(std or 0.0, digits), round(published.std or 0.0, digits)):
        return "within"
    return "better" if gain > 0 else "worse"


def best_cell(cells: Iterable[Cell], column: Column) -> Cell | None:
    """The cell with the best mean; the first of equals."""
    return max(
        (each for each in cells if each.mean is not None),
        key=lambda each: column.gain(each.mean or 0.0, 0.0),
        default=None,
    )
