"""A table with its numbers: the published one and those of every protocol for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, get_args

from idgnn.choices import Protocol
from idgnn.experiments import grid
from idgnn.experiments.protocols import PROTOCOLS_OF_PAPER
from idgnn.experiments.spec import RunRecord, Spec
from idgnn.experiments.table import Column, Row, Table
from idgnn.report.blocks import printed
from idgnn.report.cells import Cell, best_cell, compare, make_cell, published_cell

Source = Literal["published", Protocol]
"""Where a number comes from."""
SOURCES: tuple[Source, ...] = get_args(Source)
Runs = Mapping[tuple[Protocol, str, str], tuple[Spec, ...]]
"""The runs of a table, by protocol, row and column of runs."""


@dataclass(frozen=True)
class ResultTable:
    """The content of all formats. Cells that a table does not have, such as released runs beyond the paper, are absent.

    `cells` are by source, row and column.
    """

    table: Table
    cells: dict[tuple[Source, str, str], Cell]
    quick: bool = False

    @property
    def title(self) -> str:
        """Says so if its runs are small ones."""
        return self.table.title + f" ({grid.NOT_COMPARABLE})" * self.quick

    @property
    def protocols(self) -> list[Protocol]:
        """Those that have a cell."""
        found = {source for source, _, _ in self.cells}
        return [protocol for protocol in grid.PROTOCOLS if protocol in found]

    @property
    def all_sources(self) -> list[Source]:
        """Published, unless its runs are small ones, and the protocols."""
        return [source for source in SOURCES if source in self.protocols or (source == "published" and not self.quick)]

    def cell(self, source: Source, row: str, column: Column) -> Cell | None:
        """The cell of a row and column."""
        return self.cells.get((source, row, column.name))

    def groups(self) -> list[tuple[str, list[Column]]]:
        """Columns by group."""
        return [(name, list(each)) for name, each in groupby(self.table.columns, lambda column: column.group)]

    def families(self, columns: Sequence[Column] | None = None) -> list[tuple[str, list[Row]]]:
        """Rows by family; with columns, only rows that have a cell there."""
        rows = [row for row in self.table.rows if self.sources(row, columns or self.table.columns)]
        return [(name, list(each)) for name, each in groupby(rows, lambda row: row.family)]

    def sources(self, row: Row, columns: Sequence[Column]) -> list[Source]:
        """The sources that a row has in some of these columns."""
        return [source for source in SOURCES if any(self.cell(source, row.name, column) for column in columns)]

    def mark(self, source: Source, row: Row, column: Column) -> Literal["", "family", "column"]:
        """Whether a cell is the best of its family or of all families that are compared, or prints as the best does."""
        own = self.cell(source, row.name, column)
        if own is None or own.mean is None or not row.family:
            return ""
        there = [each for each in self.table.rows if self.cell(source, each.name, column)]
        compared = [each for each in there if not each.beyond] or there  # a table may be beyond the paper as a whole
        if row in compared and self._as_best(own, source, column, {each.family for each in compared}):
            return "column"
        return "family" if self._as_best(own, source, column, (row.family,)) else ""

    def _as_best(self, own: Cell, source: Source, column: Column, families: Iterable[str]) -> bool:
        best = self.best(source, column, families)
        if best is None or best.mean is None or own.mean is None:
            return False
        return printed(own.mean, column.digits) == printed(best.mean, column.digits)

    def best(self, source: Source, column: Column, families: Iterable[str]) -> Cell | None:
        """The best cell of some families."""
        return best_cell(self.column(source, column, families), column)

    def column(self, source: Source, column: Column, families: Iterable[str]) -> list[Cell]:
        """The cells of some families in a column."""
        cells = (self.cell(source, row.name, column) for row in self.table.rows if row.family in families)
        return [each for each in cells if each is not None]

    def ours(self) -> Iterator[Cell]:
        """All cells that have runs."""
        return (each for (source, _, _), each in self.cells.items() if source != "published")


def runs_of(table: Table, records: Mapping[str, RunRecord] | None = None, quick: bool = False) -> Runs:
    """All runs of a table, and those of further seeds that have a record; or the small ones of `--quick`.

    >>> from idgnn.experiments.tables import TABLES
    >>> len(runs_of(TABLES["table2"])["text", "full-gcn", "node-ScaleFree"])
    3
    """
    found: dict[tuple[Protocol, str, str], tuple[Spec, ...]] = {}
    for protocol in table.protocols:
        for spec in table.specs(protocol, grid.SEEDS):
            place = (protocol, spec.row, spec.column)
            found[place] = (*found.get(place, ()), grid.quick(spec) if quick else spec)
    return found if quick else _with_more_seeds(table, found, records or {})


def fill(table: Table, runs: Runs, records: Mapping[str, RunRecord], quick: bool = False) -> ResultTable:
    """Computes the numbers of a table. Those of small runs are compared with nothing."""
    if quick:
        table, runs = replace(table, published={}), _of_quick(runs, records)
    runs = _without_unused(runs, records)
    filled = ResultTable(table, {}, quick)
    for column in table.columns:
        for row in sorted(table.rows, key=lambda row: bool(row.best_of)):  # the best of a family comes after it
            number = table.number(column.of_runs, row.name) if column.compared else None
            if number is not None:
                filled.cells["published", row.name, column.name] = published_cell(number, column)
            for protocol in table.protocols:
                if specs := runs.get((protocol, row.name, column.of_runs)):
                    filled.cells[protocol, row.name, column.name] = make_cell(specs, records, number, column)
                elif row.best_of and (family := filled.column(protocol, column, (row.best_of,))):
                    best = best_cell(family, column) or family[0]
                    status = best.status if best.mean is None else compare(best.mean, best.std, number, column)
                    filled.cells[protocol, row.name, column.name] = replace(best, published=number, status=status)
    return filled


def _with_more_seeds(table: Table, runs: Runs, records: Mapping[str, RunRecord]) -> Runs:
    """With the runs of further seeds that have a record."""
    seeds = sorted({record.job["seed"] for record in records.values()} & set(grid.MORE_SEEDS))
    more = [spec for protocol in table.protocols * bool(seeds) for spec in table.specs(protocol, seeds)]
    found = dict(runs)
    for spec in more:
        if spec.key in records:
            place = (spec.protocol, spec.row, spec.column)
            found[place] = (*found.get(place, ()), spec)
    return found


def _without_unused(runs: Runs, records: Mapping[str, RunRecord]) -> Runs:
    """Without protocols beyond the paper, as long as none of their runs has a record."""
    used = {spec.protocol for specs in runs.values() for spec in specs if spec.key in records}
    return {place: specs for place, specs in runs.items() if place[0] in PROTOCOLS_OF_PAPER or place[0] in used}


def _of_quick(runs: Runs, records: Mapping[str, RunRecord]) -> Runs:
    """What `--quick` runs unless told otherwise, and the protocols and seeds that were run beside it."""
    default = {(protocol, seed) for protocol in grid.DEFAULT_PROTOCOLS for seed in grid.QUICK_SEEDS}
    ran = {(spec.protocol, spec.seed) for specs in runs.values() for spec in specs if spec.key in records}
    kept = {
        place: tuple(spec for spec in specs if (spec.protocol, spec.seed) in default | ran)
        for place, specs in runs.items()
    }
    return {place: specs for place, specs in kept.items() if specs}
