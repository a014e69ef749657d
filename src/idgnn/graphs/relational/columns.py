"""How the columns of a table become node features: numbers, categories, times.

The first layer of the networks is linear for each node type. On these features it is a sum over the columns, of the
same form as pytorch-frame's `LinearEncoder` (numbers), `EmbeddingEncoder` (categories, one-hot here) and
`TimestampEncoder`, without that package and pandas. :mod:`idgnn.graphs.relational.frames` has the same columns for
these encoders themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from idgnn.graphs.files.text import BadRow, BadRows, number
from idgnn.graphs.relational.tables import KeyedTable, is_missing, report
from idgnn.graphs.relational.times import DAY, YEAR, all_seconds

Kind = Literal["number", "category", "time", "text"]
MOST_CATEGORIES = 200


@dataclass(frozen=True)
class ColumnCode:
    """How one column becomes numbers.

    A number becomes `(number - mean) / scale`, a category one-hot, a time `(time - mean) / scale` and the sine and
    cosine of its place in the year and in the week. One number more indicates a missing cell or an unknown category;
    all others are then 0. Text becomes nothing.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    mean: float = 0.0
    scale: float = 1.0
    first: float = 0.0
    """The earliest of the times."""

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return {"number": 2, "category": len(self.categories) + 1, "time": 6, "text": 0}[self.kind]

    as_dict = asdict

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> ColumnCode:
        """From what :meth:`as_dict` gave, also after a round through JSON."""
        return ColumnCode(**{**values, "categories": tuple(values["categories"])})


Codes = dict[str, tuple[ColumnCode, ...]]
"""The codes of the columns of each table."""


def find_codes(tables: Mapping[str, KeyedTable], until: float | None = None) -> Codes:
    """The kind of every feature column, and means, scales and categories of the rows before the time `until`.

    A column is a number or a time if all cells are that are not missing. Otherwise it is a category if at most 200
    texts, and on average at least two rows a text, occur; else it is text and left out.
    """
    return {
        name: tuple(_find(table, column, _known_rows(table, until)) for column in _feature_columns(table))
        for name, table in tables.items()
    }


def features(table: KeyedTable, codes: tuple[ColumnCode, ...]) -> np.ndarray:
    """The features `[rows, sum of the widths]` float32; refuses cells that are not of the kind of their column."""
    parts = [_encoded(code, values) for code, values in cells_of(table, codes)]
    return np.concatenate([np.zeros((len(table), 0), np.float32), *parts], axis=1)


def cells_of(table: KeyedTable, codes: tuple[ColumnCode, ...]) -> list[tuple[ColumnCode, np.ndarray]]:
    """Every column that is no text, as numbers `[rows]`: NaN where a cell is missing or a category unknown.

    Times are seconds since 1970, categories their places among the known ones. Refuses cells that are not of the kind
    of their column.
    """
    bad: list[BadRow] = []
    if absent := [code.name for code in codes if code.name not in table.text.columns]:
        raise ValueError(
            f"{table.text.path} lacks the columns {', '.join(map(repr, absent))}, which the network was trained with."
        )
    found = [(code, _values(table, code, bad)) for code in codes if code.kind != "text"]
    if bad:
        raise BadRows(bad)
    return found


def moments(table: KeyedTable, codes: tuple[ColumnCode, ...]) -> tuple[list[int], np.ndarray]:
    """The time columns: where each stands among the features, and its seconds since 1970 `[rows, columns]`."""
    place, found, start = [], [np.zeros((len(table), 0))], 0
    for code in codes:
        if code.kind == "time":
            place.append(start)
            found.append(all_seconds(table.text.columns[code.name])[:, None])
        start += code.width
    return place, np.concatenate(found, axis=1)


def as_dicts(codes: Codes) -> dict[str, list[dict[str, Any]]]:
    """The codes of all tables as they are saved."""
    return {name: [code.as_dict() for code in each] for name, each in codes.items()}


def left_out(codes: Codes) -> dict[str, list[str]]:
    """The text columns of each table that has some: they are not read."""
    found = {name: [code.name for code in each if code.kind == "text"] for name, each in codes.items()}
    return {name: columns for name, columns in found.items() if columns}


def _feature_columns(table: KeyedTable) -> list[str]:
    schema = table.schema
    used = {schema.key, schema.time, *schema.foreign, *schema.ignore}  # the time of a row is relative to the query
    return [column for column in table.text.columns if column not in used]


def _known_rows(table: KeyedTable, until: float | None) -> np.ndarray:
    if until is None or table.time is None or not (table.time < until).any():
        return np.arange(len(table))
    return np.flatnonzero(table.time < until)


def _find(table: KeyedTable, column: str, rows: np.ndarray) -> ColumnCode:
    """The kind is found from all rows, so that no later cell is of another kind; the rest from `rows`."""
    cells = table.text.columns[column]
    distinct = {cell for cell in set(cells) if not is_missing(cell)}
    categorical = column in table.schema.categorical
    if not distinct:
        return ColumnCode(column, "text")
    readers: dict[Kind, Callable[[list[str]], np.ndarray]] = {"number": _numbers, "time": all_seconds}
    for kind, values_of in readers.items():
        values = values_of(sorted(distinct))
        if not categorical and np.isfinite(values).all():
            known = values_of([cells[row] for row in rows.tolist()])
            known = known[np.isfinite(known)]
            mean, scale, first = (known.mean(), known.std(), known.min()) if known.size else (0.0, 1.0, 0.0)
            first = float(first) if kind == "time" else 0.0
            return ColumnCode(column, kind, mean=float(mean), scale=float(scale) or 1.0, first=first)
    present = sum(not is_missing(cell) for cell in cells)
    if not categorical and (len(distinct) > MOST_CATEGORIES or 2 * len(distinct) > present):
        return ColumnCode(column, "text")
    categories = sorted({cells[row] for row in rows.tolist()} & distinct)
    return ColumnCode(column, "category", tuple(categories))


def _numbers(cells: list[str]) -> np.ndarray:
    found = {cell: number(cell) for cell in set(cells)}
    return np.array([math.nan if found[cell] is None else found[cell] for cell in cells], dtype=np.float64)


def _values(table: KeyedTable, code: ColumnCode, bad: list[BadRow]) -> np.ndarray:
    """One column as numbers, `[rows]`."""
    cells = table.text.columns[code.name]
    if code.kind == "category":
        place = {category: float(i) for i, category in enumerate(code.categories)}
        return np.fromiter((place.get(cell, math.nan) for cell in cells), np.float64, len(cells))
    values = (_numbers if code.kind == "number" else all_seconds)(cells)
    wrong = ~np.isfinite(values) & np.fromiter((not is_missing(cell) for cell in cells), bool, len(cells))
    report(table.text, wrong, lambda row: f"column {code.name!r} is {cells[row]!r}, expected a {code.kind}", bad)
    return np.where(np.isfinite(values), values, np.nan)


def _encoded(code: ColumnCode, values: np.ndarray) -> np.ndarray:
    """One column of numbers `[rows]` as features `[rows, width]`."""
    gone = np.isnan(values)
    if code.kind == "category":
        at = np.where(gone, code.width - 1, values)
        return (at[:, None] == np.arange(code.width)).astype(np.float32)
    values = np.where(gone, code.mean, values)
    parts = [(values - code.mean) / code.scale]
    if code.kind == "time":
        for period in (YEAR, 7 * DAY):
            angle = 2 * np.pi * (values % period) / period
            parts += [np.sin(angle), np.cos(angle)]
    return np.stack([*(np.where(gone, 0.0, part) for part in parts), gone], axis=1).astype(np.float32)
