"""A table with its numbers: published, `text` and `released` for every cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, get_args

from idgnn.experiments.published import BEST
from idgnn.experiments.record import Record
from idgnn.report.cells import Cell, Number, best, cell, compare
from idgnn.report.layout import BEST_OF, IN_PAPER, PROTOCOLS, Heading, Layout, Row

Line = Literal["published", "text", "released"]
LINES: tuple[Line, ...] = get_args(Line)
FindPublished = Callable[[str, str, str], Number | None]
"""The published number of a table, column and row."""
_COMPETING = (BEST_OF, "Others", *IN_PAPER)


@dataclass(frozen=True)
class Table:
    """What all writers show. A cell that a table does not have, such as a released run beyond the paper, is absent."""

    layout: Layout
    cells: dict[tuple[Line, str, str], Cell]

    def cell(self, line: Line, row: Row, heading: Heading) -> Cell | None:
        """One number of three."""
        return self.cells.get((line, row.name, heading.name))

    def groups(self) -> list[tuple[str, list[Heading]]]:
        """Columns by task."""
        return [(name, list(each)) for name, each in groupby(self.layout.headings, lambda heading: heading.group)]

    def families(self, headings: Sequence[Heading] | None = None) -> list[tuple[str, list[Row]]]:
        """Rows by family; with headings, only rows that have a cell there."""
        rows = [row for row in self.layout.rows if headings is None or self.lines(row, headings)]
        return [(name, list(each)) for name, each in groupby(rows, lambda row: row.family)]

    def lines(self, row: Row, headings: Sequence[Heading]) -> list[Line]:
        """Which of the three numbers a row has in some of these columns."""
        return [line for line in LINES if any(self.cell(line, row, heading) for heading in headings)]

    def mark(self, line: Line, row: Row, heading: Heading) -> Literal["", "family", "column"]:
        """Whether a cell is the best of its family, or of all but what goes beyond the paper."""
        own = self.cell(line, row, heading)
        if own is None or own.mean is None or not row.family:
            return ""
        if row.family in _COMPETING and own is self.best(line, heading, _COMPETING):
            return "column"
        return "family" if own is self.best(line, heading, (row.family,)) else ""

    def best(self, line: Line, heading: Heading, families: Sequence[str]) -> Cell | None:
        """The best cell of some families."""
        return best(self.column(line, heading, families))

    def column(self, line: Line, heading: Heading, families: Sequence[str]) -> list[Cell]:
        """The cells of some families in a column."""
        cells = (self.cell(line, row, heading) for row in self.layout.rows if row.family in families)
        return [each for each in cells if each is not None]

    def ours(self) -> Iterator[Cell]:
        """All cells that runs fill."""
        return (each for (line, _, _), each in self.cells.items() if line != "published")


def fill(layout: Layout, records: Mapping[str, Record], published: FindPublished) -> Table:
    """Puts the numbers into a table."""
    table = Table(layout, {})
    for heading in layout.headings:
        column = heading.column or heading.name
        for row in reversed(layout.rows):  # what stands for the best of a family comes after that family
            number = published(layout.name, column, row.name) if heading.compared else None
            if number is not None:
                place: tuple[Line, str, str] = ("published", row.name, heading.name)
                table.cells[place] = Cell("published", number.mean, number.std, published=number, digits=layout.digits)
            for protocol in PROTOCOLS:
                place = (protocol, row.name, heading.name)
                specs = layout.specs.get((protocol, row.name, column))
                if specs:
                    table.cells[place] = cell(specs, records, number, heading, layout.digits)
                elif row.name in BEST and (family := table.column(protocol, heading, (BEST[row.name],))):
                    table.cells[place] = _best_of(family, number, layout)
    return table


def _best_of(cells: Sequence[Cell], number: Number | None, layout: Layout) -> Cell:
    """The best of some cells, beside the number that the paper has for the best."""
    found = best(cells) or cells[0]
    if found.mean is None:
        return replace(found, published=number)
    return replace(found, published=number, status=compare(found.mean, found.std, number, layout.digits))
