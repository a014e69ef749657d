"""From a file of text, compressed or not, to the cells of its rows with their line numbers; rows that are bad."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, cast

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_WORD = re.compile(r'"((?:[^"]|"")*)"(?!\S)|(\S+)')  # quoted, or without blanks
NOT_KNOWN = {"", "na", "n/a", "#n/a", "nan", "null"}  # what programs write where there is no number, in any case
_MOST_SHOWN = 50  # of the bad rows: with more of them the files have one thing wrong throughout


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used."""

    path: Path
    line: int | str
    """The line of a text file, the row of a Parquet table, or a description such as `node 'a'` in other formats."""
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


class BadRows(ValueError):
    """Every bad row of all files that were read; `rows` has one entry per line of a file."""

    def __init__(self, found: Iterable[BadRow]) -> None:
        lines: dict[Path, dict[int | str, list[str]]] = {}
        for row in found:
            lines.setdefault(row.path, {}).setdefault(row.line, []).append(row.what)
        self.rows = [
            BadRow(path, line, "; ".join(dict.fromkeys(lines[path][line])))
            for path in lines
            for line in sorted(lines[path], key=lambda line: line if isinstance(line, int) else 0)
        ]
        head = f"{len(self.rows)} bad row{'s' * (len(self.rows) != 1)}, and nothing was read. Correct or remove:"
        more = [f"... and {len(self.rows) - _MOST_SHOWN} more"] if len(self.rows) > _MOST_SHOWN else []
        super().__init__("\n".join([head, *map(str, self.rows[:_MOST_SHOWN]), *more]))


def name_and_kind(path: Path) -> tuple[str, str]:
    """The stem and the suffix of a file, `.gz` left out: `("a", ".csv")` for `folder/a.csv.gz`."""
    path = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return path.stem, path.suffix.lower()


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed if they begin as gzip does. Errors of reading become ValueErrors."""
    if not path.exists():
        raise ValueError(f"there is no file {path}. Check the path; it is relative to {Path.cwd()}.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, expected a file. Name one of the files in it.")
    try:
        with path.open("rb") as plain:
            compressed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            if not compressed:
                yield plain
                return
            with gzip.open(plain) as file:
                yield cast(IO[bytes], file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged: it begins as gzip does, but cannot be decompressed ({error}). Write it again."
        ) from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(
            f"{path} is not UTF-8 text: it has a byte 0x{byte:02x}. Save it in the encoding UTF-8."
        ) from error


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a file in UTF-8, with their ends; a byte order mark is left out."""
    with opened(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        yield from text


def rows_of_text(path: Path, bad: list[BadRow]) -> Iterator[tuple[int, list[str]]]:
    """The cells of every row, with the line on which the row ends; comments and blank lines are left out.

    Cells are separated by commas in `.csv` and by tabs in `.tsv`. Elsewhere by the first of comma, tab and semicolon
    that all of the first lines contain, or else by blanks. Cells in double quotes may contain anything. Of a
    MatrixMarket file the line with the sizes is left out.
    """
    delimiter = delimiter_of(path)
    if delimiter is None:
        sizes = next(text_lines(path), "").startswith(("%%MatrixMarket", "%MatrixMarket"))
        for number, line in enumerate(text_lines(path), 1):
            if _has_cells(line):
                if not sizes:
                    yield number, _words(line)
                sizes = False
        return

    number, inside = 0, False

    def lines_of_rows() -> Iterator[str]:
        # A line that continues a quoted cell is not skipped, even if it looks like a comment.
        nonlocal number, inside
        for number, line in enumerate(text_lines(path), 1):  # noqa: B007
            if inside or _has_cells(line):
                inside = True
                yield line

    reader = csv.reader(lines_of_rows(), delimiter=delimiter, skipinitialspace=True, strict=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad.append(BadRow(path, number, f"the quotes do not match ({error})"))
        else:
            yield number, row
        inside = False


def _has_cells(line: str) -> bool:
    return not (line.startswith(("#", "%")) or line.isspace())


def delimiter_of(path: Path) -> str | None:
    """The character that separates cells; `None` where blanks do."""
    if known := DELIMITERS.get(name_and_kind(path)[1]):
        return known
    return _common_mark(list(islice(filter(_has_cells, text_lines(path)), 20)))


def other_delimiter(path: Path, rows: Sequence[list[str]]) -> str | None:
    """The character that seems to separate the cells of a file of one column, if its suffix stands for another one.

    `rows` are the first ones, as they were read.
    """
    known = DELIMITERS.get(name_and_kind(path)[1])
    if known is None or len(rows[0]) > 1:
        return None
    mark = _common_mark([known.join(row) for row in rows])
    return None if mark == known else mark


def too_few_columns(path: Path, columns: Iterable[str], expected: str) -> ValueError:
    """The error of a table with fewer columns than expected, often because another character separates them."""
    return ValueError(
        f"{path} has the columns {', '.join(map(repr, columns))}, expected {expected}. The suffix .csv stands for "
        "commas and .tsv for tabs; with the suffix .txt the separator is detected."
    )


def _common_mark(lines: Sequence[str]) -> str | None:
    """The first of comma, tab and semicolon that all lines contain."""
    return next((mark for mark in ",\t;" if lines and all(mark in line for line in lines)), None)


def _words(line: str) -> list[str]:
    if '"' not in line:
        return line.split()
    return [quoted.replace('""', '"') or plain for quoted, plain in _WORD.findall(line)]


def number(cell: str) -> float | None:
    """The number that a cell holds, possibly NaN or infinite; `None` if it holds something else."""
    try:
        return None if "_" in cell else float(cell)  # For Python 1_2 is a number; in a table it is a name.
    except ValueError:
        return None
