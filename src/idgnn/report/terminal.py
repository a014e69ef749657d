"""The tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.console import Console
from rich.text import Text

from idgnn.experiments.table import Column
from idgnn.report.blocks import Block, Shown, Verdict
from idgnn.report.cells import RULE, Cell, Status
from idgnn.report.ratios import ratios
from idgnn.report.report import Report
from idgnn.report.results import ResultTable
from idgnn.report.wide import Wide

_STYLE: dict[Status, str] = {
    "better": "blue", "worse": "yellow", "missing": "dim", "failed": "red", "published": "dim"
}  # fmt: skip
_VERDICT_STYLE: dict[Verdict, str] = {"holds": "green", "does not hold": "red", "not run": "dim"}


def show(report: Report, console: Console) -> None:
    """Prints all tables, one part for each task, or several where the terminal is narrow, and then the summary."""
    for table in report.tables:
        console.rule(table.title)
        if table.table.note:
            console.print(table.table.note, highlight=False)
        for group, columns in table.groups():
            for part in _numbers(table, group, columns).parts(console.width):
                console.print(part)
        beside = ratios(table)
        if beside:
            _block(beside, console)
    console.print(RULE, highlight=False, style="dim")
    if report.expectations:
        console.rule("Expectations")
        for block in (*report.expectations[1:], report.expectations[0]):
            _block(block, console)
    console.print(report.title, style="bold", highlight=False)
    for sentence in (*report.headline, *report.summary.sentences()):
        console.print(sentence, highlight=False)


def _block(block: Block, console: Console) -> None:
    heads = (f"{head.group}\n{head.title}" if head.group else head.title for head in block.heads)
    sections = [
        [*_title(group), *([Text(line.name), *map(_shown, line.cells)] for line in lines)]
        for group, lines in block.line_groups()
    ]
    for part in Wide(block.title, [block.corner, *heads], 1, sections, framed=True).parts(console.width):
        console.print(part)
    console.print(block.caption, highlight=False, style="dim")


def _title(group: str) -> list[list[Text]]:
    """The row above the rows of a group."""
    return [[Text(group, style="bold")]] if group else []


def _shown(cell: Shown) -> Text:
    if cell.check is None:
        return Text(cell.text, style="dim" if cell.text == "not run" else "")
    return Text(cell.whole, style=_VERDICT_STYLE[cell.check.verdict])


def _numbers(table: ResultTable, group: str, columns: Sequence[Column]) -> Wide:
    sections = []
    for family, rows in table.families(columns):
        section = _title(family)
        for row in rows:
            for place, source in enumerate(table.sources(row, columns)):
                cells = [_cell(table.cell(source, row.name, each), table.mark(source, row, each)) for each in columns]
                section.append([Text("" if place else row.title), Text(source, style="dim"), *cells])
        sections.append(section)
    return Wide(group, ["", "", *(column.title for column in columns)], 2, sections)


def _cell(cell: Cell | None, mark: str) -> Text:
    if cell is None:
        return Text("")
    color = _STYLE.get(cell.status, "")
    style = f"{color}{' bold' * bool(mark)}{' underline' * (mark == 'column')}".strip()
    text = Text(cell.number.replace(" ", "") if cell.mean is not None else cell.number, style=style)
    return text.append(f" {cell.sign} {cell.count and f'({cell.count})'}".rstrip(), style=color)


def plain(report: Report, width: int = 120) -> str:
    """The same as a text without colors."""
    console = Console(width=width, file=StringIO(), record=True)
    show(report, console)
    return console.export_text()
