"""What is wrong with the rows of a user's files: collected over all of them, and reported together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SHOWN = 50  # More do not help: by then the files have one thing wrong throughout.


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used."""

    path: Path
    line: int | str
    """The line of the file; the row of a Parquet table; what is meant, such as `node 'a'`, in other formats."""
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


class BadRows(ValueError):
    """Every bad row of all files that were read. What is wrong with one line makes one entry of `rows`."""

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
        more = [f"... and {len(self.rows) - SHOWN} more"] if len(self.rows) > SHOWN else []
        super().__init__("\n".join([head, *map(str, self.rows[:SHOWN]), *more]))
