"""What the pages about speed are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def record(name: str) -> dict[str, Any]:
    """What a benchmark wrote: date, machine, versions, figures."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def where(machine: dict[str, Any]) -> str:
    """The machine in words: its GPU, or how many threads of its processor."""
    threads = machine["threads"]
    return machine.get("gpu") or f"{threads} thread{'' if threads == 1 else 's'} of an {machine['processor']}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> list[str]:
    """Lines of Markdown; the first columns are words, the others numbers."""
    head = list(head)
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
