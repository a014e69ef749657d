"""The tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from idgnn.report.cells import RULE, SIGN, Cell, Status
from idgnn.report.gains import EXPECTED, TICK, gains
from idgnn.report.layout import Heading
from idgnn.report.origin import origin
from idgnn.report.tables import Table

_STYLE: dict[Status, str] = {
    "above": "blue",
    "within": "",
    "below": "yellow",
    "alone": "",
    "missing": "dim",
    "failed": "red",
    "published": "dim",
}


def show(tables: Sequence[Table], console: Console) -> None:
    """Prints all tables, one part for each task so that 80 characters are enough."""
    for table in tables:
        console.rule(table.layout.title)
        if table.layout.note:
            console.print(table.layout.note, highlight=False)
        for group, headings in table.groups():
            console.print(_numbers(table, group, headings))
        if gains(table):
            console.print(_gains(table))
    for sentence in (RULE, EXPECTED, *origin(tables).sentences()):
        console.print(sentence, highlight=False, style="dim")


def _numbers(table: Table, group: str, headings: Sequence[Heading]) -> Grid:
    grid = Grid("", "", *(heading.title for heading in headings), title=group or None, title_justify="left")
    for family, rows in table.families(headings):
        grid.add_section()
        if family:
            grid.add_row(Text(family, style="bold"))
        for row in rows:
            for place, line in enumerate(table.lines(row, headings)):
                cells = [_cell(table.cell(line, row, each), table.mark(line, row, each)) for each in headings]
                grid.add_row("" if place else row.title, Text(line, style="dim"), *cells)
    return grid


def _cell(cell: Cell | None, mark: str) -> Text:
    if cell is None:
        return Text("")
    style = f"{_STYLE[cell.status]}{' bold' * bool(mark)}{' underline' * (mark == 'column')}".strip()
    text = Text(cell.number.replace(" ", "") if cell.mean is not None else cell.number, style=style)
    return text.append(f" {SIGN[cell.status]} {cell.share and f'({cell.share})'}".rstrip(), style=_STYLE[cell.status])


def _gains(table: Table) -> Grid:
    grid = Grid("best ID-GNN over best GNN", "published", "text", "margin, best", "released", "margin, best")
    for published, *ours in gains(table):
        heading = published.heading
        cells = [f"{heading.title} ({heading.group})" if heading.group else heading.title, _percent(published.gain)]
        for gain in ours:
            cells += [_percent(gain.gain), f"{TICK[gain.margin]} {TICK[gain.best]}"]
        grid.add_row(*cells)
    return grid


def _percent(gain: float | None) -> str:
    return "" if gain is None else f"{100 * gain:+.1f} %"


def plain(tables: Sequence[Table], width: int = 120) -> str:
    """The same as a text without colours."""
    console = Console(width=width, file=StringIO(), record=True)
    show(tables, console)
    return console.export_text()
