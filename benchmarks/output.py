"""What all benchmarks do with their figures: a table for people, JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe
from benchmarks.timing import Figure
from idgnn.writing import write_text


def show(figures: list[Figure], title: str) -> None:
    """A table for people."""
    table = Table("what", "measured", "target", "", title=title)
    for figure in figures:
        target = f"{figure.target} {figure.unit}" if figure.target else ""
        mark = "" if not figure.target else "[green]met[/]" if figure.met else "[red]missed[/]"
        table.add_row(figure.name, f"{figure.value:.2f} {figure.unit}", target, mark)
    Console().print(table)


def write(path: Path, figures: list[Figure], device: str = "cpu") -> None:
    """The same for programs, with what is needed to make sense of it later."""
    record = describe(device) | {"figures": [figure.as_dict() for figure in figures]}
    write_text(path, json.dumps(record, indent=2) + "\n")
