"""A cell of a table: what came of its runs, beside what the paper has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal, Protocol

from idgnn.experiments.record import Record
from idgnn.experiments.spec import Spec
from idgnn.report.layout import Heading
from idgnn.report.values import values

Status = Literal["above", "within", "below", "alone", "missing", "failed", "published"]
"""Beside the published number; `alone` if there is none to judge by, `published` if it is that number itself."""

SIGN: dict[Status, str] = {
    "above": "▲", "within": "≈", "below": "▼", "alone": "", "missing": "", "failed": "✗", "published": "",
}  # fmt: skip
RULE = (
    "▲ above, ≈ within, ▼ below the published number. Within: our mean differs from it by no more than the larger of "
    "the two standard deviations, all as printed. Ours are those of a sample (n - 1), the published ones of a "
    "population (n)."
)


class Number(Protocol):
    """A published number."""

    @property
    def mean(self) -> float: ...
    @property
    def std(self) -> float | None: ...


@dataclass(frozen=True)
class Run:
    """A run that a cell asks for, and what is known of it."""

    spec: Spec
    record: Record | None
    value: float | None


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation over the runs that are there: `n` of the `asked`."""

    status: Status
    mean: float | None = None
    std: float | None = None
    n: int = 0
    asked: int = 0
    published: Number | None = None
    runs: tuple[Run, ...] = ()
    digits: int = 3

    @property
    def failed(self) -> int:
        """How many runs ended with an error."""
        return sum(run.record is not None and run.record.error is not None for run in self.runs)

    @property
    def number(self) -> str:
        """As printed, `0.985 ± 0.012`; or why there is none."""
        if self.mean is None:
            return "failed" if self.status == "failed" else "not run"
        spread = "" if self.std is None else f" ± {self.std:.{self.digits}f}"
        return f"{self.mean:.{self.digits}f}{spread}"

    @property
    def share(self) -> str:
        """`2 of 3` if some runs are not there; nothing if all are, or none."""
        return f"{self.n} of {self.asked}" if 0 < self.n < self.asked else ""


def cell(
    specs: Sequence[Spec], records: Mapping[str, Record], published: Number | None, heading: Heading, digits: int = 3
) -> Cell:
    """The cell that these runs fill."""
    kept = [records.get(spec.key) for spec in specs]
    runs = tuple(map(Run, specs, kept, values(specs, kept, heading)))
    found = [run.value for run in runs if run.value is not None]
    if not found:
        # A measurement may leave a part out: on a CPU there are no CUDA graphs.
        failed = any(record is not None and (record.error or heading.metric) for record in kept)
        return Cell("failed" if failed else "missing", None, None, 0, len(specs), published, runs, digits)
    mean, std = fmean(found), stdev(found) if len(found) > 1 else None
    status = compare(mean, std, published, digits) if heading.judged else "alone"
    return Cell(status, mean, std, len(found), len(specs), published, runs, digits)


def compare(mean: float, std: float | None, published: Number | None, digits: int) -> Status:
    """Where a mean stands beside the published one. Numbers as printed, so that a reader can check it by eye."""
    if published is None:
        return "alone"
    difference = round(round(mean, digits) - round(published.mean, digits), digits)
    if abs(difference) <= max(round(std or 0.0, digits), round(published.std or 0.0, digits)):
        return "within"
    return "above" if difference > 0 else "below"


def best(cells: Iterable[Cell]) -> Cell | None:
    """The cell with the best mean; the first of equals."""
    return max((each for each in cells if each.mean is not None), key=lambda each: each.mean or 0.0, default=None)
