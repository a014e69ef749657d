"""A column of text in which each different cell is kept once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TextColumn:
    """Row i holds the cell `distinct[codes[i]]`.

    Example:
        >>> column = TextColumn.of(["red", "blue", "red"])
        >>> column.distinct, column.codes.tolist(), column[2]
        (['red', 'blue'], [0, 1, 0], 'red')
    """

    codes: np.ndarray  # [rows]
    distinct: list[str]

    @staticmethod
    def of(cells: Iterable[str]) -> TextColumn:
        """From the cells of all rows."""
        place: dict[str, int] = {}
        codes = np.fromiter((place.setdefault(cell, len(place)) for cell in cells), np.int64)
        return TextColumn(codes, list(place))

    @staticmethod
    def constant(cell: str, rows: int) -> TextColumn:
        """The same cell in every row."""
        return TextColumn(np.zeros(rows, np.int8), [cell] if rows else [])

    def __len__(self) -> int:
        return self.codes.size

    def __getitem__(self, row: int) -> str:
        return self.distinct[self.codes[row]]

    def cells(self) -> list[str]:
        """The cells of all rows."""
        return [self.distinct[code] for code in self.codes.tolist()]

    def rows_where(self, cells: Iterable[str]) -> np.ndarray:
        """The rows that hold one of the given cells."""
        wanted = set(cells)
        hit = np.fromiter((cell in wanted for cell in self.distinct), np.bool_, len(self.distinct))
        return np.flatnonzero(hit[self.codes]) if hit.any() else np.zeros(0, np.int64)


def joint_codes(first: TextColumn, second: TextColumn) -> tuple[np.ndarray, list[str]]:
    """The cells of two columns of equal length under common codes, `[2, rows]`, and the different cells."""
    place = {cell: i for i, cell in enumerate(first.distinct)}
    codes = [place.setdefault(cell, len(place)) for cell in second.distinct]
    of_second = np.array(codes, np.int64)
    both = np.empty((2, len(first)), np.int64)
    both[0] = first.codes
    both[1] = of_second[second.codes] if len(second) else 0
    return both, list(place)


def rows_of_codes(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """The rows of each code from 0 to `count - 1`, in their order."""
    if count <= 1:
        return [np.arange(codes.size)] * count
    ends = np.bincount(codes, minlength=count).cumsum()
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])
