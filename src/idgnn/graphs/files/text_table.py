"""A table of text, column by column, from a text file or a Parquet file."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path

from idgnn.graphs.files.text import BadRow, name_and_kind, rows_of_text

ROWS_AT_ONCE = 500  # that become columns together: few enough for the CPU cache, which is three times as fast

NamesOf = Callable[[list[str], list[str] | None], list[str] | None]


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Columns of text under their names, all of one length."""

    path: Path
    lines: Sequence[int | str]
    """Where each row is in the file: see :class:`~idgnn.graphs.files.text.BadRow`."""
    columns: dict[str, list[str]]
    partial: dict[str, int] = field(default_factory=dict)
    """How many cells a column lacks, which then are empty: only attributes of GraphML and GML can be missing."""


def read_table(path: Path, names_of: NamesOf, bad: list[BadRow]) -> TextTable:
    """Reads a table of text or a Parquet file. Blanks around cells are removed.

    `names_of` is called with the first two rows: it returns the names of the columns if there is no header, and `None`
    if the first row is one.
    """
    if name_and_kind(path)[1] == ".parquet":
        cells = _parquet_columns(path)
        return TextTable(path=path, lines=range(1, len(next(iter(cells.values()), [])) + 1), columns=cells)

    rows = rows_of_text(path, bad)
    number, first = next(rows, (0, []))
    if not first:
        raise ValueError(f"{path} is empty, expected a table. An edge table without edges has a header: source,target.")
    first = [cell.strip() for cell in first]
    second = next(rows, None)
    if second is not None:
        rows = chain([second], rows)
    names = names_of(first, None if second is None else second[1])
    if names is None:
        names = first
        if "" in names:
            raise ValueError(f"column {names.index('') + 1} of {path} has no name. Give every column a name.")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"the header of {path} names {', '.join(map(repr, twice))} more than once. Rename one of them."
            )
    else:
        rows = chain([(number, first)], rows)

    lines = array("q")
    columns: list[list[str]] = [[] for _ in names]
    same: dict[str, str] = {}  # equal cells share one string
    pending: list[list[str]] = []

    def flush() -> None:
        for column, cells in zip(columns, zip(*pending, strict=True), strict=False):
            stripped = list(map(str.strip, cells))
            column.extend(map(same.setdefault, stripped, stripped))
        pending.clear()

    for number, row in rows:
        if len(row) != len(names):
            bad.append(BadRow(path, number, f"{len(row)} cells, expected {len(names)}: {', '.join(names)}"))
            continue
        lines.append(number)
        pending.append(row)
        if len(pending) == ROWS_AT_ONCE:
            flush()
    flush()
    return TextTable(path=path, lines=lines, columns=dict(zip(names, columns, strict=True)))


def _parquet_columns(path: Path) -> dict[str, list[str]]:
    """The columns of a Parquet file as the text of a CSV file; null is empty. Needs pyarrow."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ValueError(f"{path} is a Parquet file: pip install pyarrow, or save it as .csv.") from error
    if not path.is_file():
        raise ValueError(f"there is no file {path}. Check the path; it is relative to {Path.cwd()}.")
    try:
        columns = parquet.read_table(path).to_pydict()
    except Exception as error:  # pyarrow has many types of errors
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from error
    return {name: ["" if cell is None else str(cell) for cell in cells] for name, cells in columns.items()}
