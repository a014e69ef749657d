"""A table of text, column by column, from a text file or a Parquet file."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from idgnn.graphs.files.arrow_table import fast_columns, parquet_columns
from idgnn.graphs.files.text import BadRow, name_and_kind, rows_of_text
from idgnn.graphs.files.text_column import TextColumn

HEAD = 100  # rows that are looked at to find out whether there is a header

NamesOf = Callable[[list[str], list[list[str]]], list[str] | None]


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Columns of text under their names, all of one length."""

    path: Path
    lines: Sequence[int | str]
    """Where each row is in the file: see :class:`~idgnn.graphs.files.text.BadRow`."""
    columns: dict[str, TextColumn]
    header: bool | None = None
    """Whether the first row names the columns; `None` for other files than text."""
    partial: dict[str, int] = field(default_factory=dict)
    """How many cells a column lacks, which then are empty: only attributes of GraphML and GML can be missing."""


def read_table(path: Path, names_of: NamesOf, bad: list[BadRow], *, row_by_row: bool = False) -> TextTable:
    """Reads a table of text or a Parquet file. Blanks around cells are removed.

    `names_of` is called with the first row and some of those after it: it returns the names of the columns if there is
    no header, and `None` if the first row is one. Files without anything unusual are read by pyarrow, all others, and
    those with bad rows, row by row; `row_by_row` reads all of them so.
    """
    if name_and_kind(path)[1] == ".parquet":
        cells = parquet_columns(path)
        return TextTable(path=path, lines=range(1, len(next(iter(cells.values()), ())) + 1), columns=cells)

    unread: list[BadRow] = []
    rows = rows_of_text(path, unread)
    number, first = next(rows, (0, []))
    if not first:
        raise ValueError(
            f"{path} is empty, expected a table. A table without rows has the line with the names of its columns."
        )
    first = [cell.strip() for cell in first]
    head = list(islice(rows, HEAD))
    names = names_of(first, [[cell.strip() for cell in row] for _, row in head])
    header = names is None
    if names is None:
        names = first
        if "" in names:
            raise ValueError(f"column {names.index('') + 1} of {path} has no name. Give every column a name.")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"the header of {path} names {', '.join(map(repr, twice))} more than once. Rename one of them."
            )
    if not row_by_row and not any("\n" in cell for cell in first) and head:
        columns = fast_columns(path, names, header)
        if columns is not None:
            lines = _LinesOfRows(path, int(header), len(columns[0]))
            return TextTable(path=path, lines=lines, columns=dict(zip(names, columns, strict=True)), header=header)

    kept: list[list[str]] = []
    lines = array("q")
    for number, row in chain(head if header else [(number, first), *head], rows):  # noqa: B020
        if len(row) != len(names):
            unread.append(BadRow(path, number, f"{len(row)} cells, expected {len(names)}: {', '.join(names)}"))
            continue
        lines.append(number)
        kept.append(row)
    bad.extend(unread)
    cells = {name: TextColumn.of(row[i].strip() for row in kept) for i, name in enumerate(names)}
    return TextTable(path=path, lines=lines, columns=cells, header=header)


class _LinesOfRows(Sequence[int]):
    """The lines on which the rows of a file end. The file is read again when the first of them is needed."""

    def __init__(self, path: Path, skipped: int, count: int) -> None:
        self.path, self.skipped, self.length = path, skipped, count
        self.found: list[int] | None = None

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, row):  # type: ignore[override]
        if self.found is None:
            self.found = [number for number, _ in rows_of_text(self.path, [])][self.skipped :]
        return self.found[row]
