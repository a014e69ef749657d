"""`idgnn data`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from idgnn.graphs.catalog import CATALOG, NAMES, find
from idgnn.graphs.raw_files import expected, fetch, file_problems, is_available, is_offered, locate

Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME ...]")]


@dataclass(frozen=True)
class DataVerb:
    """List the datasets that can be used by name, download them, or check their files.

    idgnn data

    idgnn data fetch ENZYMES Cora

    idgnn data verify
    """

    action: tyro.conf.Positional[Literal["list", "fetch", "verify"]] = "list"
    """What to do; verify without names checks all datasets whose files are here."""
    names: tyro.conf.Positional[Names] = ()
    """Datasets by name, in upper or lower case."""

    def __call__(self) -> None:
        """Does the action for every dataset, and then reports all errors."""
        if self.action == "list":
            _show(self.names or NAMES)
            return
        if self.action == "fetch" and not self.names:
            raise ValueError("no dataset was named. Name some, for example idgnn data fetch ENZYMES.")
        names = self.names or tuple(
            name for name, entry in CATALOG.items() if entry.folder is not None and is_available(name)
        )
        if not names:
            raise ValueError("no dataset with files is here. Fetch one, for example idgnn data fetch ENZYMES.")
        problems = []
        for name in names:
            try:
                (_fetch if self.action == "fetch" else _verify)(name)
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise ValueError("\n".join(problems))


def _show(names: tuple[str, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    entries = [find(name) for name in names]
    cited = list(dict.fromkeys(entry.citation for entry in entries))
    table = Table("name", "graphs", "kind", "labels for the tasks", "here", "cite", show_lines=True)
    table.columns[0].no_wrap = True
    table.columns[1].justify = "right"
    for entry in entries:
        here = "yes" if is_available(entry.name) else "no"
        cite = f"({cited.index(entry.citation) + 1})"
        table.add_row(entry.name, f"{entry.num_graphs:,}", entry.kind, ", ".join(entry.tasks), here, cite)
    console = Console()
    console.print(table)
    for number, citation in enumerate(cited, 1):
        console.print(f"({number}) {citation}", highlight=False, soft_wrap=True)
    console.print(_how_to_get([entry.name for entry in entries]), highlight=False, soft_wrap=True)


def _how_to_get(names: list[str]) -> str:
    others = [name for name in names if not is_available(name) and not is_offered(name)]
    exception = f", but no download is offered for {', '.join(others)}: set IDGNN_DATA to a folder that holds them"
    said = "What is not here is downloaded when it is used, or by idgnn data fetch NAME"
    return f"{said}{exception if others else ''}."


def _fetch(name: str) -> None:
    entry = find(name)
    if entry.folder is None:
        print(f"{entry.name}: is generated, there is nothing to fetch")
        return
    if not is_available(name) and entry.source.startswith("http"):
        print(f"{entry.name}: downloading from {entry.source}", flush=True)
    fetch(name)
    found = locate(entry)
    assert found is not None
    print(f"{entry.name}: is in {found.root / entry.folder}, {_files(len(found.expected))} as expected")


def _verify(name: str) -> None:
    entry = find(name)
    problems = file_problems(name)
    if problems:
        print(f"{entry.name}: wrong")
        raise ValueError("\n".join(problems))
    number = len(expected(entry)) if entry.folder is not None else 0
    print(f"{entry.name}: {_files(number)} as expected" if number else f"{entry.name}: is generated, it has no files")


def _files(number: int) -> str:
    return f"{number} file{'s' * (number != 1)}"
