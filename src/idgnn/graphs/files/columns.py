"""Columns of text become numbers: which kind of column it is, and the tensor that it makes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from idgnn.graphs.files.bad_rows import BadRow
from idgnn.graphs.files.table import Table
from idgnn.graphs.schema import Column

MOST_CATEGORIES = 1000  # More are names or remarks rather than categories, and would make tables of gigabytes.
MOST_CLASSES = 50  # More distinct numbers are amounts rather than the names of classes.
LARGEST = torch.finfo(torch.float32).max


NOT_KNOWN = {"", "na", "n/a", "#n/a", "nan", "null"}  # what programs write where there is no number, in any case


def number(cell: str) -> float | None:
    """The number that a cell holds, possibly NaN or infinite; `None` if it holds something else."""
    try:
        return None if "_" in cell else float(cell)  # For Python 1_2 is a number; in a table it is a name.
    except ValueError:
        return None


def feature_column(name: str, cells: Iterable[str], path: Path) -> Column:
    """A number if all cells are, those that are empty or `NA` aside; otherwise every different text is a category."""
    distinct = set(cells)
    if _are_numbers(distinct):
        return Column(name)
    if len(distinct) > MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} of {path} has {len(distinct)} different values that are not all numbers, expected at "
            f"most {MOST_CATEGORIES} categories. If it is no feature, name it in ignore."
        )
    return Column(name, tuple(sorted(distinct)))


def label_column(name: str, cells: Iterable[str], quantity: bool | None = None) -> Column:
    """A quantity if all cells are numbers and some have a fraction, or if there are many; otherwise classes.

    Cells that are empty or `NA` have no say. Classes are sorted, as numbers if all of them are whole. With `quantity`
    it is known what the label is.
    """
    distinct = dict.fromkeys(cell for cell in cells if not _is_unknown(cell))  # in the order of the file
    if quantity:
        if distinct and all(number(cell) is None for cell in distinct):
            raise ValueError(
                f"the label {name!r} holds text, such as {next(iter(distinct))!r}, but a regression expects numbers. "
                "Name a column of numbers, or choose a classification."
            )
        return Column(name)
    if not distinct or not _are_numbers(distinct):
        return Column(name, tuple(sorted(distinct)))
    value = {cell: float(cell) for cell in distinct if math.isfinite(float(cell))}
    many = len(set(value.values())) > MOST_CLASSES or not all(v.is_integer() for v in value.values())
    if many and quantity is None:
        return Column(name)
    return Column(name, tuple(sorted(value, key=lambda cell: (value[cell], cell))))


def features(columns: Sequence[Column], table: Table, bad: list[BadRow]) -> Tensor:
    """The features of every row, from at least one column: `[rows, sum of the widths]`."""
    parts = []
    for column in columns:
        values = _coded(column, table, bad)  # [rows]
        if column.categories is None:
            parts.append(((values - column.mean) / column.scale).float().unsqueeze(1))
        else:
            parts.append((values.unsqueeze(1) == torch.arange(column.width)).float())  # [rows, categories]
    return torch.cat(parts, dim=1)


def labels(column: Column, table: Table, bad: list[BadRow]) -> Tensor:
    """The labels of every row, `[rows]`: numbers of classes, or quantities. Unknown is -1, or NaN.

    A cell that is empty or `NA` is unknown, and so is a class that was not there when the schema was made, and all in a
    table that lacks the column.
    """
    values = _coded(column, table, bad, empty=unknown(column))
    return values.float() if column.categories is None else values.long()


def unknown(column: Column) -> float:
    """What stands for a label that is not known."""
    return math.nan if column.categories is None else -1


def _are_numbers(distinct: Collection[str]) -> bool:
    """Whether all cells that are not empty are numbers, and one of them is finite; true if there is no cell at all."""
    numbers = [number(cell) for cell in distinct if not _is_unknown(cell)]
    return None not in numbers and (
        not distinct or any(value is not None and math.isfinite(value) for value in numbers)
    )


def _coded(column: Column, table: Table, bad: list[BadRow], empty: float | None = None) -> Tensor:
    """Every cell as a number, `[rows]`: itself, or the place of its category. Each distinct cell is looked at once."""
    cells = table.columns.get(column.name, [""] * len(table.lines))
    codes: dict[str, float] = {}
    wrong: dict[str, str] = {}
    place = None if column.categories is None else {category: i for i, category in enumerate(column.categories)}
    for cell in set(cells):
        code = number(cell) if place is None else place.get(cell)
        if empty is not None and (_is_unknown(cell) or (place is not None and code is None)):
            codes[cell] = empty
            continue
        if code is None or not abs(code) <= LARGEST:
            wrong[cell] = f"column {column.name!r} is {cell!r}, expected {_expected(column)}"
        codes[cell] = math.nan if code is None else code
    if wrong:
        bad.extend(BadRow(table.path, table.lines[i], wrong[cell]) for i, cell in enumerate(cells) if cell in wrong)
    return torch.from_numpy(np.fromiter(map(codes.__getitem__, cells), np.float64, len(cells)))


def _is_unknown(cell: str) -> bool:
    return cell.lower() in NOT_KNOWN


def _expected(column: Column) -> str:
    if column.categories is None:
        return "a finite number"
    known = ", ".join(map(repr, column.categories[:10]))
    return f"one of the known {known}" + (f" and {column.width - 10} more" if column.width > 10 else "")
