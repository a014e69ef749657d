"""A small table of texts that every writer shows in its own way: expectations, ratios, machines."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from idgnn.report.expectations.check import Check, Tally


@dataclass(frozen=True)
class Shown:
    """What stands in a cell: a text, and behind it the sign of what was expected, if anything was."""

    text: str
    check: Check | None = None
    hint: str = ""  # shown by a page when the cell is pointed at

    @property
    def sign(self) -> str:
        """Empty where the text says already that it was not run."""
        return "" if self.check is None or self.check.found is None else self.check.sign

    @property
    def whole(self) -> str:
        """The text and the sign."""
        return f"{self.text} {self.sign}".rstrip()


@dataclass(frozen=True)
class Head:
    """The head of a column, and the head that it shares with its neighbors, if any."""

    title: str
    group: str = ""


@dataclass(frozen=True)
class Line:
    """A row: its name, its cells, and the group of rows that it is part of, if any."""

    name: str
    cells: tuple[Shown, ...]
    group: str = ""


@dataclass(frozen=True)
class Block:
    """A table with a title and a sentence on how to read it; `name` is for links to it."""

    name: str
    title: str
    caption: str
    corner: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    tallies: tuple[Tally, ...] = ()

    def head_groups(self) -> list[tuple[str, int]]:
        """The heads that neighbors share, and how many they are."""
        return [(group, len(list(each))) for group, each in groupby(self.heads, lambda head: head.group)]

    def line_groups(self) -> list[tuple[str, list[Line]]]:
        """The rows by group."""
        return [(group, list(each)) for group, each in groupby(self.lines, lambda line: line.group)]
