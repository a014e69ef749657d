"""Whether the first row of a table of text names the columns: what the user says, or else what the cells show."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from idgnn.graphs.files.text import NOT_KNOWN, number, other_delimiter, too_few_columns

PAIRS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))


@dataclass(frozen=True)
class HeaderHints:
    """What is known about the first row before it is read."""

    given: bool | None = None
    """Whether it is a header, if the user says so."""
    names: Collection[str] = ()
    """Columns that the user names: a row with one of them is a header."""


def names_of_edges(path: Path, first: list[str], below: Sequence[list[str]], hints: HeaderHints) -> list[str] | None:
    """The names of the columns of a table of edges if it has no header, or `None` if the first row is one.

    It is a header if it has a pair of names for the ends, such as source and target, or a column that the user names,
    or if numbers alone are below a text. It is none if all its cells from the third on are numbers. Everything else
    with more than two columns is refused.
    """
    made = ["source", "target", "weight", *(f"column {i}" for i in range(4, len(first) + 1))][: len(first)]
    if hints.given is not None:
        return None if hints.given else made
    lower = {cell.lower() for cell in first}
    if any(set(pair) <= lower for pair in PAIRS) or set(first) & set(hints.names):
        return None
    words = [i for i, cell in enumerate(first) if i >= 2 and number(cell) is None]
    if words:
        numbers = (i < len(row) and number(row[i]) is not None for i in words for row in below[:1])
        if not below or any(numbers) or any(_text_above_numbers(first, below, i) for i in words):
            return None
        raise ValueError(
            f"the first row of {path} ({', '.join(first[:4])}) may be a header or an edge. Say which (--header, "
            "--no-header; header=..., no_header=...), or add a header that names the ends source and target."
        )
    if len(first) >= 2 and any(_text_above_numbers(first, below, i) for i in (0, 1)) and not _any_number(first):
        _guessed(path, first, "a header", "--no-header")
        return None
    _warn_of_words(path, first, below)
    return made


def names_of_rows(
    path: Path,
    first: list[str],
    below: Sequence[list[str]],
    hints: HeaderHints,
    keys: Sequence[str],
    known: Callable[[str], bool],
) -> list[str] | None:
    """The same for a table of nodes or of graphs.

    The first row is a header if it has one of the names `keys`, or of a column that the user names; it is none if its
    first cell is a `known` node or graph. Otherwise it is a header if numbers alone are below a text, and none if it
    has numbers alone; what is left is taken for a header, with a warning. A table of one column that another character
    than that of its suffix seems to separate is refused, unless it lists nodes or graphs that are `known`.
    """
    rows = [first, *below]
    if (mark := other_delimiter(path, rows)) is not None and not any(known(row[0]) for row in rows):
        raise too_few_columns(path, first, f"several, which {mark!r} seems to separate")
    made = [keys[0], *(f"column {i}" for i in range(2, len(first) + 1))]
    if hints.given is not None:
        return None if hints.given else made
    if {cell.lower() for cell in first} & {*keys, "graph"} or set(first) & set(hints.names):
        return None
    if known(first[0]):
        return made
    if any(_text_above_numbers(first, below, i) for i in range(len(first))):
        return None
    if all(number(cell) is not None for cell in first):
        _guessed(path, first, "no header", "--header")
        return made
    _guessed(path, first, "a header", "--no-header")
    return None


def _text_above_numbers(first: list[str], below: Sequence[list[str]], column: int) -> bool:
    cells = [row[column] for row in below if column < len(row) and row[column].lower() not in NOT_KNOWN]
    top = first[column]
    return (
        number(top) is None
        and top.lower() not in NOT_KNOWN
        and bool(cells)
        and all(number(cell) is not None for cell in cells)
    )


def _any_number(cells: list[str]) -> bool:
    return any(number(cell) is not None for cell in cells)


def _guessed(path: Path, first: list[str], taken_for: str, option: str) -> None:
    shown = ", ".join(first[:4]) + ", ..." * (len(first) > 4)
    warnings.warn(f"the first row of {path} ({shown}) was taken for {taken_for}. If not, say {option}.", stacklevel=2)


def _warn_of_words(path: Path, first: list[str], below: Sequence[list[str]]) -> None:
    """Warns of a first row of two words that occur nowhere else, which may be a header."""
    if len(first) != 2 or len(below) < 2 or _any_number(first):
        return
    if not set(first) & {cell for row in below for cell in row}:
        warnings.warn(
            f"{path} was read without a header: its first row, {first[0]!r} and {first[1]!r}, is an edge. If it is a "
            "header, say --header (header=True), or call these columns source and target.",
            stacklevel=2,
        )
