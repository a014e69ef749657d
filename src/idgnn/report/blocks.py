"""Small tables of texts that every format shows: expectations and whether they hold, ratios, numbers of runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from idgnn.choices import Protocol

Verdict = Literal["holds", "does not hold", "not run"]
VERDICT_SIGN: dict[Verdict, str] = {"holds": "✓", "does not hold": "✗", "not run": "not run"}


@dataclass(frozen=True)
class Check:
    """The number that an expectation is about, whether it is as expected, and whether all its runs have finished."""

    found: float | None
    holds: bool
    complete: bool

    @property
    def verdict(self) -> Verdict:
        """In words."""
        if self.found is None:
            return "not run"
        return "holds" if self.holds else "does not hold"

    @property
    def so_far(self) -> bool:
        """Whether missing runs may change the verdict."""
        return self.found is not None and not self.complete

    @property
    def sign(self) -> str:
        """As printed: `✓`, `✗ so far`, `not run`."""
        return VERDICT_SIGN[self.verdict] + (" so far" if self.so_far else "")

    @property
    def css_class(self) -> str:
        """The class that gives the verdict its color."""
        return self.verdict.replace(" ", "-")


def printed(value: float, digits: int = 3) -> float:
    """As a reader sees it, so that verdicts can be checked by eye; zero has no sign."""
    return round(value, digits) + 0.0


def reaches(found: float | None, bound: float, complete: bool, lower_is_better: bool = False, digits: int = 3) -> Check:
    """Holds if the number is at least the bound, or at most if lower is better."""
    if found is None:
        return Check(None, False, complete)
    difference = printed(found, digits) - printed(bound, digits)
    return Check(found, difference <= 0 if lower_is_better else difference >= 0, complete)


def within(difference: float | None, tolerance: float, complete: bool) -> Check:
    """Holds if the absolute difference is at most the tolerance."""
    return Check(difference, difference is not None and printed(abs(difference)) <= printed(tolerance), complete)


@dataclass(frozen=True)
class Tally:
    """The expectations of one kind under one protocol."""

    name: str
    protocol: Protocol
    checks: tuple[Check, ...]

    def number(self, verdict: Verdict) -> int:
        """How many have this verdict."""
        return sum(check.verdict == verdict for check in self.checks)

    def so_far(self, verdict: Verdict) -> int:
        """How many of these may still change."""
        return sum(check.verdict == verdict and check.so_far for check in self.checks)


@dataclass(frozen=True)
class Shown:
    """The content of a cell: a text, and a check, if something is expected of it."""

    text: str
    check: Check | None = None
    hint: str = ""  # the tooltip of the HTML page
    counts: tuple[str, Protocol] | None = None  # the expectation and protocol for which the check counts

    @property
    def sign(self) -> str:
        """Empty where the text is "not run" already."""
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


def heads(*titles: str) -> tuple[Head, ...]:
    """Heads without groups."""
    return tuple(map(Head, titles))


@dataclass(frozen=True)
class Line:
    """A row: its name, its cells, and its group of rows, if any."""

    name: str
    cells: tuple[Shown, ...]
    group: str = ""


@dataclass(frozen=True)
class Block:
    """A table with a title and a caption; `name` is for links to it."""

    name: str
    title: str
    caption: str
    corner: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]

    @property
    def tallies(self) -> list[Tally]:
        """The checks of its cells, by what they count for."""
        found = dict[tuple[str, Protocol], list[Check]]()
        for cell in (cell for line in self.lines for cell in line.cells):
            if cell.check is not None and cell.counts is not None:
                found.setdefault(cell.counts, []).append(cell.check)
        return [Tally(*counts, tuple(checks)) for counts, checks in found.items()]

    def head_groups(self) -> list[tuple[str, int]]:
        """The shared heads, and the number of columns of each."""
        return [(group, len(list(each))) for group, each in groupby(self.heads, lambda head: head.group)]

    def line_groups(self) -> list[tuple[str, list[Line]]]:
        """The rows by group."""
        return [(group, list(each)) for group, each in groupby(self.lines, lambda line: line.group)]
