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
    from collections.abc import Iterator, Mapping, Sequence

    from idgnn.experiments.spec import RunRecord, Spec
    from idgnn.report.layout import Layout
    from idgnn.report.tables import ResultTable

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
    """Show the tables that have runs of idgnn reproduce --quick. They are not comparable with the paper."""

    def __call__(self) -> None:
        """Reads the records, fills the tables, and writes them."""
        from idgnn.experiments.grid import NOT_COMPARABLE, TABLES
        from idgnn.experiments.published import published
        from idgnn.experiments.store import read_records
        from idgnn.report.layout import layout
        from idgnn.report.tables import fill
        from idgnn.writing import write_text

        kind = self._format()
        found = read_records(self.store)
        for sentence in found.broken:
            print(f"idgnn: note: {sentence}", file=sys.stderr)
        layouts = [layout(name, quick=self.quick) for name in TABLES]
        places = {spec.key for each in layouts for spec in _runs(each)}
        if unknown := len(found.records.keys() - places):
            print(
                f"idgnn: note: {unknown} of {len(found.records)} records belong to no cell of a table and are not "
                f"shown: runs {'without --quick' if self.quick else 'of --quick (add --quick to see them)'}, or with "
                "data or settings of another version.",
                file=sys.stderr,
            )
        if self.quick and not any(_trained(each, found.records) for each in layouts):
            raise ValueError(f"{self.store} holds no run of idgnn reproduce --quick. Leave --quick out.")
        published_number = (lambda *place: None) if self.quick else published
        tables = [fill(each, found.records, published_number) for each in layouts if self._wants(each, found.records)]
        if self.quick:
            print(f"idgnn: note: {NOT_COMPARABLE}.", file=sys.stderr)
        if self.output is None:
            _show(tables) if kind == "terminal" else print(_text(tables, kind), end="")
            return
        write_text(self.output, _text(tables, kind))
        print(f"{self.output}: {len(tables)} table{'s' * (len(tables) != 1)}, {len(found.records)} records")

    def _wants(self, table: Layout, records: Mapping[str, RunRecord]) -> bool:
        if self.tables:
            return table.name in self.tables
        return not self.quick or any(spec.key in records for spec in _runs(table))

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


def _runs(table: Layout) -> Iterator[Spec]:
    return (spec for specs in table.specs.values() for spec in specs)


def _trained(table: Layout, records: Mapping[str, RunRecord]) -> bool:
    """Whether a network of the table was trained; measurements are the same with --quick and without."""
    from idgnn.experiments.spec import TrainJob

    return any(isinstance(spec.job, TrainJob) and spec.key in records for spec in _runs(table))


def _show(tables: Sequence[ResultTable]) -> None:
    from rich.console import Console

    from idgnn.report.terminal import show

    show(tables, Console())


def _text(tables: Sequence[ResultTable], kind: Format) -> str:
    if kind == "markdown":
        from idgnn.report.markdown import markdown as write
    elif kind == "latex":
        from idgnn.report.latex import latex as write
    elif kind == "html":
        from idgnn.report.page import page as write
    else:
        from idgnn.report.terminal import plain as write
    return write(tables)
