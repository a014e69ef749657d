"""What a table is made of: its rows, columns, runs, published numbers and expectations. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from idgnn.choices import Protocol
from idgnn.experiments.expectations import Expectation
from idgnn.experiments.readings import Reading
from idgnn.experiments.spec import MeasureJob, Spec


@dataclass(frozen=True)
class Row:
    """A network or a measurement; `name` is the one of its runs."""

    name: str
    title: str
    family: str = ""
    """The rows with which it is shown; the best of them is marked."""
    beyond: bool = False
    """Not in the paper: it has no published number, and is part of no comparison."""
    best_of: str = ""
    """It has no runs: it shows the best row of this family."""


@dataclass(frozen=True)
class Column:
    """A column, and how its numbers are read from records."""

    name: str
    title: str
    read: Reading
    group: str = ""
    """The columns with which it is shown."""
    runs: str = ""
    """The column of its runs, if several columns show the same runs."""
    metric: str = ""
    """Of a network on the validation part, for learning curves; empty: a measurement."""
    curves: bool = True
    """Whether learning curves are drawn; false if another column with the same runs has them."""
    compared: bool = True
    """Whether it is shown beside the published number."""
    judged: bool = True
    """Whether it can be better or worse than that; not for times on another machine."""
    lower_is_better: bool = False
    digits: int = 3

    @property
    def of_runs(self) -> str:
        """The column of its runs and of its published numbers."""
        return self.runs or self.name

    def gain(self, ours: float, theirs: float) -> float:
        """By how much the first is better than the second."""
        return theirs - ours if self.lower_is_better else ours - theirs


@dataclass(frozen=True)
class Published:
    """A published number."""

    mean: float
    std: float | None = None


MakeSpecs = Callable[[Protocol, Sequence[int]], list[Spec]]
"""The runs of a table under a protocol, for some seeds."""
Numbers = Mapping[str, Mapping[str, Sequence[float]]]
"""By column of the runs and row: the mean, and the deviation if there is one."""


@dataclass(frozen=True)
class Ratio:
    """How many times larger the first row is than the second; the rows of the published ratio, if there is one."""

    title: str
    first: str
    second: str
    published: tuple[str, str] | None = None


@dataclass(frozen=True)
class Ratios:
    """Ratios of the rows of a table. `read` gives the value of a row in one result."""

    caption: str
    lines: tuple[Ratio, ...]
    read: Callable[[Mapping[str, Any], Column, str], float | None]


@dataclass(frozen=True)
class Table:
    """A table: everything but our results."""

    name: str
    title: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    make_specs: MakeSpecs
    published: Numbers
    protocols: tuple[Protocol, ...] = ("text",)
    note: str = ""
    """What a reader has to know about its numbers."""
    expectations: tuple[Expectation, ...] = ()
    ratios: Ratios | None = None

    def specs(self, protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
        """Its runs for some seeds; none under a protocol that it does not have."""
        return self.make_specs(protocol, seeds) if protocol in self.protocols else []

    def number(self, column: str, row: str) -> Published | None:
        """The published number of a column of runs and a row, if there is one.

        Example:
            >>> from idgnn.experiments.tables import TABLES
            >>> TABLES["table2"].number("node-ScaleFree", "full-gcn")
            Published(mean=0.9854, std=0.0062)
        """
        cell = self.published.get(column, {}).get(row)
        return None if cell is None else Published(*cell)

    @property
    def short_title(self) -> str:
        """`Table 2` of `Table 2: Graph properties`."""
        return self.title.partition(":")[0]


def measurements(table: str, jobs: Mapping[str, MeasureJob], rows: Iterable[str]) -> MakeSpecs:
    """A measurement for each column and seed, which the rows share."""
    rows = tuple(rows)
    return lambda protocol, seeds: [
        Spec(table, column, row, protocol, seed, replace(job, seed=seed))
        for column, job in jobs.items()
        for seed in seeds
        for row in rows
    ]
