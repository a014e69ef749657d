"""A table with its numbers: published, `text` and `released` for every cell; and the gain of identities by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import hypot
from typing import Literal, get_args

from idgnn.experiments.published import BEST, Published
from idgnn.experiments.spec import RunRecord
from idgnn.report.cells import Cell, best_cell, compare, make_cell
from idgnn.report.layout import BEST_OF, IN_PAPER, PROTOCOLS, Heading, Layout, Row

Source = Literal["published", "text", "released"]
"""Where a number comes from."""
SOURCES: tuple[Source, ...] = get_args(Source)
FindPublished = Callable[[str, str, str], Published | None]
"""The published number of a table, column and row."""
_COMPETING = (BEST_OF, "Others", *IN_PAPER)


@dataclass(frozen=True)
class ResultTable:
    """The content of all formats. Cells that a table does not have, such as released runs beyond the paper, are absent.

    `cells` are by source, row and heading.
    """

    layout: Layout
    cells: dict[tuple[Source, str, str], Cell]

    def cell(self, source: Source, row: str, heading: Heading) -> Cell | None:
        """The cell of a row and column."""
        return self.cells.get((source, row, heading.name))

    def groups(self) -> list[tuple[str, list[Heading]]]:
        """Columns by task."""
        return [(name, list(each)) for name, each in groupby(self.layout.headings, lambda heading: heading.group)]

    def families(self, headings: Sequence[Heading] | None = None) -> list[tuple[str, list[Row]]]:
        """Rows by family; with headings, only rows that have a cell there."""
        rows = [row for row in self.layout.rows if headings is None or self.sources(row, headings)]
        return [(name, list(each)) for name, each in groupby(rows, lambda row: row.family)]

    def sources(self, row: Row, headings: Sequence[Heading]) -> list[Source]:
        """The sources that a row has in some of these columns."""
        return [source for source in SOURCES if any(self.cell(source, row.name, heading) for heading in headings)]

    def mark(self, source: Source, row: Row, heading: Heading) -> Literal["", "family", "column"]:
        """Whether a cell is the best of its family, or of all families of the paper."""
        own = self.cell(source, row.name, heading)
        if own is None or own.mean is None or not row.family:
            return ""
        if row.family in _COMPETING and own is self.best(source, heading, _COMPETING):
            return "column"
        return "family" if own is self.best(source, heading, (row.family,)) else ""

    def best(self, source: Source, heading: Heading, families: Sequence[str]) -> Cell | None:
        """The best cell of some families."""
        return best_cell(self.column(source, heading, families))

    def column(self, source: Source, heading: Heading, families: Sequence[str]) -> list[Cell]:
        """The cells of some families in a column."""
        cells = (self.cell(source, row.name, heading) for row in self.layout.rows if row.family in families)
        return [each for each in cells if each is not None]

    def ours(self) -> Iterator[Cell]:
        """All cells that have runs."""
        return (each for (source, _, _), each in self.cells.items() if source != "published")


def fill(layout: Layout, records: Mapping[str, RunRecord], published: FindPublished) -> ResultTable:
    """Computes the numbers of a table."""
    table = ResultTable(layout, {})
    for heading in layout.headings:
        column = heading.column or heading.name
        for row in reversed(layout.rows):  # the best of a family comes after that family
            number = published(layout.name, column, row.name) if heading.compared else None
            if number is not None:
                place: tuple[Source, str, str] = ("published", row.name, heading.name)
                table.cells[place] = Cell("published", number.mean, number.std, published=number, digits=layout.digits)
            for protocol in PROTOCOLS:
                place = (protocol, row.name, heading.name)
                specs = layout.specs.get((protocol, row.name, column))
                if specs:
                    table.cells[place] = make_cell(specs, records, number, heading, layout.digits)
                elif row.name in BEST and (family := table.column(protocol, heading, (BEST[row.name],))):
                    table.cells[place] = _best_of(family, number, layout)
    return table


def _best_of(cells: Sequence[Cell], number: Published | None, layout: Layout) -> Cell:
    """The best of some cells, beside the published number for the best."""
    found = best_cell(cells) or cells[0]
    if found.mean is None:
        return replace(found, published=number)
    return replace(found, published=number, status=compare(found.mean, found.std, number, layout.digits))


@dataclass(frozen=True)
class Gain:
    """The best GNN and the best ID-GNN of the paper in a column, from one source."""

    heading: Heading
    source: Source
    gnn: Cell | None
    identity: Cell | None
    gnns_complete: bool  # every run of every GNN of the paper has a number
    identities_complete: bool

    @property
    def gain(self) -> float | None:
        """By how much the best ID-GNN is above the best GNN."""
        if self.gnn is None or self.identity is None or self.gnn.mean is None or self.identity.mean is None:
            return None
        return self.identity.mean - self.gnn.mean

    @property
    def deviation(self) -> float:
        """The standard deviation of the gain: those of both cells, added in quadrature."""
        return hypot(*(cell.std or 0.0 for cell in (self.gnn, self.identity) if cell is not None))


def gains(table: ResultTable) -> list[tuple[Gain, Gain, Gain]]:
    """Published, `text` and `released` for every column of Tables 2 and 3, which compare the families."""
    if table.layout.name not in ("table2", "table3"):
        return []
    return [
        (_gain(table, heading, "published"), _gain(table, heading, "text"), _gain(table, heading, "released"))
        for heading in table.layout.headings
    ]


def _gain(table: ResultTable, heading: Heading, source: Source) -> Gain:
    gnn, identity = IN_PAPER[:1], IN_PAPER[1:]
    complete = (all(cell.complete for cell in table.column(source, heading, each)) for each in (gnn, identity))
    return Gain(heading, source, table.best(source, heading, gnn), table.best(source, heading, identity), *complete)
