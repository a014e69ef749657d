"""Tables with keys: the rows that foreign keys name, and the time of every row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from idgnn.graphs.files.text import BadRow, BadRows
from idgnn.graphs.files.text_table import read_table
from idgnn.graphs.relational.schema import SCHEMA_FILE, TableSchema, read_schema
from idgnn.graphs.relational.times import DAY, all_seconds

_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".csv.gz", ".tsv.gz", ".txt.gz")
# In any case; databases write \N for null, pandas <NA>.
MISSING = {"", "na", "n/a", "#n/a", "nan", "nat", "none", "null", "<na>", "\\n"}


@dataclass(frozen=True)
class CellTable:
    """Columns of text under their names, and where each row is in its file."""

    path: Path
    lines: Sequence[int | str]
    columns: Mapping[str, list[str]]


@dataclass(frozen=True)
class KeyedTable:
    """The rows of one table, in the order of its file."""

    text: CellTable
    schema: TableSchema
    keys: list[str]
    """The key of each row as it is written; row numbers if the table has none."""
    links: Mapping[str, np.ndarray]  # foreign key -> [rows] the row in the other table, -1 where the cell is empty
    time: np.ndarray | None  # [rows] int64 seconds since 1970

    def __len__(self) -> int:
        return len(self.keys)

    def row_of(self) -> dict[str, int]:
        """The row of each key."""
        return {key: row for row, key in enumerate(self.keys)}


def read_tables(folder: Path, schema: Mapping[str, TableSchema] | None = None) -> dict[str, KeyedTable]:
    """Reads a folder of tables; the schema is that of its `schema.toml` unless it is given.

    Raises:
        BadRows: rows with a repeated or empty key, a foreign key without its row, or no time; all of them are listed.
        ValueError: a file or a column of the schema is missing.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}. Name the folder that holds the tables and {SCHEMA_FILE}.")
    if schema is None:
        schema = read_schema(folder / SCHEMA_FILE)
    bad: list[BadRow] = []
    texts = {name: read_cells(_file_of(folder, name, table), bad) for name, table in schema.items()}
    return connect(texts, schema, bad)


def connect(
    texts: Mapping[str, CellTable], schema: Mapping[str, TableSchema], bad: list[BadRow] | None = None
) -> dict[str, KeyedTable]:
    """Tables of text with their foreign keys as row numbers and their times as seconds."""
    bad = [] if bad is None else bad
    for name, text in texts.items():
        _check_columns(name, text, schema)
    keys = {name: _keys(texts[name], table, bad) for name, table in schema.items()}
    row_of = {name: {key: row for row, key in enumerate(found)} for name, found in keys.items()}
    links = {
        name: {
            column: _rows(texts[name], column, row_of[target], target, bad) for column, target in table.foreign.items()
        }
        for name, table in schema.items()
    }
    times = {name: _times(name, texts, schema, links, bad) for name in schema}
    if bad:
        raise BadRows(bad)
    return {
        name: KeyedTable(texts[name], table, keys[name], links[name], times[name]) for name, table in schema.items()
    }


def read_cells(path: Path, bad: list[BadRow]) -> CellTable:
    """Reads a table with a header."""
    table = read_table(path, lambda *_: None, bad)
    return CellTable(path, table.lines, {name: column.cells() for name, column in table.columns.items()})


def is_missing(cell: str) -> bool:
    """Whether a cell is empty or holds what programs write where there is no value."""
    return cell.lower() in MISSING


def find_row(row_of: Mapping[str, int], cell: str, absent: int) -> int:
    """The row of a key. A whole number may be written as pandas writes those of a column with gaps, 46 as 46.0.

    Example:
        >>> find_row({"46": 3}, "46.0", -1), find_row({"46": 3}, "47", -1)
        (3, -1)
    """
    whole = cell.removesuffix(".0")
    return row_of.get(cell, row_of.get(whole, absent) if whole.isdecimal() else absent)


def report(text: CellTable, wrong: np.ndarray, what: Callable[[int], str], bad: list[BadRow]) -> None:
    """Adds the rows where `wrong` `[rows]` holds to the bad ones."""
    bad.extend(BadRow(text.path, text.lines[row], what(row)) for row in np.flatnonzero(wrong).tolist())


def _file_of(folder: Path, name: str, table: TableSchema) -> Path:
    if table.file is not None:
        return folder / table.file
    found = [folder / f"{name}{suffix}" for suffix in _SUFFIXES if (folder / f"{name}{suffix}").is_file()]
    if not found:
        raise ValueError(f"{folder} has no file for table {name!r}, expected {name}.csv, .tsv, .txt or .parquet.")
    if len(found) > 1:
        raise ValueError(
            f"{folder} has {' and '.join(each.name for each in found)} for table {name!r}. Name one of them in the "
            "schema (file)."
        )
    return found[0]


def _check_columns(name: str, text: CellTable, schema: Mapping[str, TableSchema]) -> None:
    table = schema[name]
    through, dot, of_other = (table.time or "").rpartition(".")
    own_time = [] if table.time is None or (dot and table.time not in text.columns) else [table.time]
    named = [*([table.key] if table.key else []), *table.foreign, *own_time, *table.ignore, *table.categorical]
    if absent := [column for column in dict.fromkeys(named) if column not in text.columns]:
        raise ValueError(
            f"the schema of table {name!r} names {', '.join(map(repr, absent))}, but {text.path} has the columns "
            f"{', '.join(text.columns)}."
        )
    if table.time is not None and not own_time and schema[table.foreign[through]].time != of_other:
        other = table.foreign[through]
        raise ValueError(
            f"table {name!r} takes its time from {table.time!r}, but the time of table {other!r} is "
            f"{schema[other].time!r}. Give that table the time {of_other!r}, or correct the name."
        )


def _keys(text: CellTable, table: TableSchema, bad: list[BadRow]) -> list[str]:
    if table.key is None:
        return [str(row) for row in range(len(text.lines))]
    cells = text.columns[table.key]
    first: dict[str, int] = {}
    for row, cell in enumerate(cells):
        if is_missing(cell):
            bad.append(BadRow(text.path, text.lines[row], f"key {table.key!r} is empty"))
        elif first.setdefault(cell, row) != row:
            where = text.lines[first[cell]]
            bad.append(BadRow(text.path, text.lines[row], f"key {table.key!r} is {cell!r}, as in line {where}"))
    return cells


def _rows(text: CellTable, column: str, row_of: Mapping[str, int], target: str, bad: list[BadRow]) -> np.ndarray:
    """The row of the other table that each row refers to; an empty foreign key refers to none."""
    cells = text.columns[column]
    code = {cell: -1 if is_missing(cell) else find_row(row_of, cell, -2) for cell in set(cells)}
    rows = np.fromiter(map(code.__getitem__, cells), np.int64, len(cells))
    report(
        text, rows == -2, lambda row: f"foreign key {column!r} is {cells[row]!r}, which {target!r} does not have", bad
    )
    return np.maximum(rows, -1)


def _times(
    name: str,
    texts: Mapping[str, CellTable],
    schema: Mapping[str, TableSchema],
    links: Mapping[str, Mapping[str, np.ndarray]],
    bad: list[BadRow],
) -> np.ndarray | None:
    """The time of every row: its own column, or that of the row that a foreign key names."""
    table, text = schema[name], texts[name]
    if table.time is None:
        return None
    if table.time in text.columns:
        cells = text.columns[table.time]
        found = all_seconds(cells)
        report(
            text,
            np.isnan(found),
            lambda row: (
                f"time {table.time!r} is {cells[row]!r}, expected a date or a time such as 2010-01-31 or "
                "2010-01-31 13:00:00"
            ),
            bad,
        )
    else:
        through = table.time.rpartition(".")[0]
        others = _times(table.foreign[through], texts, schema, links, [])  # its bad rows are reported with its table
        assert others is not None  # _check_columns has seen that it is there
        rows = links[name][through]
        found = np.append(others.astype(np.float64), np.nan)[rows]  # row -1 is the last
        empty = np.fromiter(map(is_missing, text.columns[through]), bool, len(rows))  # others are reported already
        report(text, empty, lambda row: f"{through!r} is empty, and gives the time", bad)
    return (np.nan_to_num(found) + table.shift_days * DAY).astype(np.int64)
