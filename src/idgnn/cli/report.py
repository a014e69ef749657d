"""`idgnn report`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from idgnn.choices import TableName
from idgnn.cli.arguments import File

if TYPE_CHECKING:
    from collections.abc import Mapping

    from idgnn.experiments.spec import RunRecord, Spec
    from idgnn.report.report import Report as Content

Format = Literal["terminal", "markdown", "latex", "html"]
_EXTENSIONS: dict[str, Format] = {".md": "markdown", ".tex": "latex", ".html": "html", ".txt": "terminal"}


@dataclass(frozen=True)
class Report:
    """Show the tables of the paper: published numbers, those of the records of idgnn reproduce, and expectations.

    idgnn report

    idgnn report results --output report.html --tables table2 table3

    idgnn report --format markdown --output docs/results.md
    """

    store: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="[STORE]")] = Path("results")
    """The folder of the records, or a file of records: .jsonl, .jsonl.gz."""
    format: Format | None = None
    """Unless given, by the extension of --output (.md, .tex, .html, .txt), or terminal."""
    output: Annotated[File, tyro.conf.arg(aliases=["-o"])] = None
    """The output file; unless given, the report is printed."""
    tables: tuple[TableName, ...] = ()
    """Unless given, all."""
    quick: bool = False
    """Show the tables that have runs of idgnn reproduce --quick. They are not comparable with published numbers."""

    def __call__(self) -> None:
        """Reads the records, fills the tables, and writes them."""
        from idgnn.experiments.grid import NOT_COMPARABLE
        from idgnn.experiments.store import read_records
        from idgnn.experiments.tables import TABLES
        from idgnn.report.report import Report as Content
        from idgnn.report.results import fill, runs_of
        from idgnn.writing import write_text

        kind = self._format()
        found = read_records(self.store)
        for sentence in found.broken:
            print(f"idgnn: note: {sentence}", file=sys.stderr)
        runs = {name: runs_of(table, found.records, self.quick) for name, table in TABLES.items()}
        keys = {name: {spec.key: spec for specs in each.values() for spec in specs} for name, each in runs.items()}
        with_runs = [name for name, each in keys.items() if each.keys() & found.records.keys()]
        if self.quick:
            if not any(_trained(keys[name], found.records) for name in with_runs):
                raise ValueError(f"{self.store} holds no run of idgnn reproduce --quick. Leave --quick out.")
            print(f"idgnn: note: {NOT_COMPARABLE}.", file=sys.stderr)
        if unknown := len(found.records.keys() - {key for each in keys.values() for key in each}):
            print(
                f"idgnn: note: {unknown} of {len(found.records)} records belong to no cell of a table and are not "
                f"shown: runs {'without --quick' if self.quick else 'of --quick (add --quick to see them)'}, or with "
                "data or settings of another version.",
                file=sys.stderr,
            )
        chosen = self.tables or (with_runs if self.quick else TABLES)
        tables = [fill(TABLES[name], runs[name], found.records, self.quick) for name in TABLES if name in chosen]
        report = Content(tuple(tables))
        if self.output is None:
            _show(report) if kind == "terminal" else print(_text(report, kind), end="")
            return
        write_text(self.output, _text(report, kind))
        print(f"{self.output}: {len(tables)} table{'s' * (len(tables) != 1)}, {len(found.records)} records")

    def _format(self) -> Format:
        if self.output is None:
            if self.format == "html":
                raise ValueError("html needs an output file. Add --output, for example --output report.html.")
            return self.format or "terminal"
        if self.format is None and self.output.suffix not in _EXTENSIONS:
            raise ValueError(
                f"the output is {self.output}, expected an extension of {', '.join(_EXTENSIONS)}. Or add --format."
            )
        return self.format or _EXTENSIONS[self.output.suffix]


def _trained(runs: Mapping[str, Spec], records: Mapping[str, RunRecord]) -> bool:
    """Whether a network was trained; measurements are the same with --quick and without."""
    from idgnn.experiments.spec import TrainJob

    return any(isinstance(spec.job, TrainJob) and key in records for key, spec in runs.items())


def _show(report: Content) -> None:
    from rich.console import Console

    from idgnn.report.terminal import show

    show(report, Console())


def _text(report: Content, kind: Format) -> str:
    if kind == "terminal":
        from idgnn.report.terminal import plain

        return plain(report)
    from idgnn.report.pages import latex, markdown, page

    return {"markdown": markdown, "latex": latex, "html": page}[kind](report)
