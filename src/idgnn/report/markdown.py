"""The tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.report.cells import RULE, SIGN, Cell
from idgnn.report.gains import EXPECTED, TICK, gains
from idgnn.report.layout import Heading
from idgnn.report.origin import origin
from idgnn.report.tables import Table


def markdown(tables: Sequence[Table]) -> str:
    """All tables, a part for each task; bold: the best of a family, underlined besides: of the column."""
    parts = ["# The tables of the paper", _escape(" ".join(origin(tables).sentences())), _escape(RULE)]
    for table in tables:
        parts += [f"## {_escape(table.layout.title)}", *([_escape(table.layout.note)] if table.layout.note else [])]
        for group, headings in table.groups():
            parts += [f"### {_escape(group)}"] if group else []
            parts.append(_numbers(table, headings))
        if gains(table):
            parts += ["### Best ID-GNN over best GNN", _escape(EXPECTED), _gains(table)]
    return "\n\n".join(parts) + "\n"


def _numbers(table: Table, headings: Sequence[Heading]) -> str:
    lines = [["family", "model", "", *(heading.title for heading in headings)]]
    for family, rows in table.families(headings):
        first = family
        for row in rows:
            title = row.title
            for line in table.lines(row, headings):
                cells = (_cell(table.cell(line, row, each), table.mark(line, row, each)) for each in headings)
                lines.append([_escape(first), _escape(title), line, *cells])
                first = title = ""
    return _grid(lines, left=3)


def _cell(cell: Cell | None, mark: str) -> str:
    if cell is None:
        return ""
    number = f"<u>**{cell.number}**</u>" if mark == "column" else f"**{cell.number}**" if mark else cell.number
    return f"{number} {SIGN[cell.status]} {cell.share and f'({cell.share})'}".strip()


def _gains(table: Table) -> str:
    lines = [["column", "published", "text", "margin", "best", "released", "margin", "best"]]
    for published, *ours in gains(table):
        cells = [_escape(f"{published.heading.title}, {published.heading.group}"), _percent(published.gain)]
        for gain in ours:
            cells += [_percent(gain.gain), TICK[gain.margin], TICK[gain.best]]
        lines.append(cells)
    return _grid(lines, left=1)


def _grid(lines: Sequence[Sequence[str]], left: int) -> str:
    rule = ["---"] * left + ["---:"] * (len(lines[0]) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def _percent(gain: float | None) -> str:
    return "" if gain is None else f"{100 * gain:+.1f} %"


def _escape(text: str) -> str:
    for character in "\\`*_|<>[]":
        text = text.replace(character, f"\\{character}")
    return text
