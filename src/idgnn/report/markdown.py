"""The report in Markdown, as GitHub shows it: a summary, the expectations, the tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from idgnn.report.best import best_networks
from idgnn.report.blocks import Block, Head
from idgnn.report.cells import RULE, SIGN, Cell
from idgnn.report.expectations.every import expectations, headline
from idgnn.report.layout import Heading
from idgnn.report.origin import origin, runs_by_table
from idgnn.report.ratios import ratios
from idgnn.report.tables import Table

_TITLE = "The tables of the paper"
_LEAD = (
    "Each number as it was *published*, as we get it when we follow the *text* of the paper, and with the settings of "
    "the *released* code. This page is written by `idgnn report` from the records of the runs; no number is by hand."
)
_SIGNS = "Signs in the tables"
_MARKS = "**Bold**: the best of its family; <ins>**underlined**</ins> besides: the best of its column."


def markdown(tables: Sequence[Table]) -> str:
    """The whole page."""
    blocks = expectations(tables)
    parts = [f"# {_TITLE}", _LEAD, _contents(tables, blocks), *_summary(tables, blocks)]
    if blocks:
        parts += ["## Expectations", *(part for block in blocks[1:] for part in _block(block, "###"))]
    parts += [f"## {_SIGNS}", _escape(RULE), _MARKS]
    for table in tables:
        parts += [f"## {_escape(table.layout.title)}", *([_escape(table.layout.note)] if table.layout.note else [])]
        for group, headings in table.groups():
            parts += [f"### {_escape(group)}"] if group else []
            parts.append(_numbers(table, headings))
        beside = ratios(table)
        parts += _block(beside, "###") if beside else []
    return "\n\n".join(parts) + "\n"


def _contents(tables: Sequence[Table], blocks: Sequence[Block]) -> str:
    titles = ["Summary", *(["Expectations"] if blocks else []), *(table.layout.title for table in tables)]
    return "\n".join(f"- [{_escape(title)}](#{_anchor(title)})" for title in titles)


def _anchor(title: str) -> str:
    """How GitHub calls a heading.

    >>> _anchor("Table 2: Graph properties")
    'table-2-graph-properties'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _summary(tables: Sequence[Table], blocks: Sequence[Block]) -> list[str]:
    runs, *rest = origin(tables).sentences()
    said = [runs, *headline(blocks), *rest]
    parts = ["## Summary", "\n".join(f"- {_escape(sentence)}" for sentence in said)]
    for block in (best_networks(tables), *blocks[:1], runs_by_table(tables)):
        parts += _block(block, "###") if block else []
    return parts


def _block(block: Block, level: str) -> list[str]:
    lines = [[_escape(block.corner), *map(_head, block.heads)]]
    for group, rows in block.line_groups():
        lines += [[f"**{_escape(group)}**", *[""] * len(block.heads)]] if group else []
        lines += [[_escape(row.name), *(_unbroken(_escape(cell.whole)) for cell in row.cells)] for row in rows]
    return [f"{level} {_escape(block.title)}", _escape(block.caption), _grid(lines, left=1)]


def _head(head: Head) -> str:
    return f"{_escape(head.group)}<br>{_escape(head.title)}" if head.group else _escape(head.title)


def _numbers(table: Table, headings: Sequence[Heading]) -> str:
    lines = [["model", "", *(heading.title for heading in headings)]]
    for family, rows in table.families(headings):
        lines += [[f"**{_escape(family)}**", *[""] * (len(headings) + 1)]] if family else []
        for row in rows:
            title = row.title
            for line in table.lines(row, headings):
                cells = (_cell(table.cell(line, row, each), table.mark(line, row, each)) for each in headings)
                lines.append([_escape(title), line, *cells])
                title = ""
    return _grid(lines, left=2)


def _cell(cell: Cell | None, mark: str) -> str:
    if cell is None:
        return ""
    number = f"**{cell.number}**" if mark else cell.number
    number = f"<ins>{number}</ins>" if mark == "column" else number
    return f"{_unbroken(f'{number} {SIGN[cell.status]}'.rstrip())} {cell.share and f'({cell.share})'}".rstrip()


def _unbroken(text: str) -> str:
    """Keeps a number, its deviation and its sign on one line."""
    return text.replace(" ", "\u00a0")


def _grid(lines: Sequence[Sequence[str]], left: int) -> str:
    rule = ["---"] * left + ["---:"] * (len(lines[0]) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def _escape(text: str) -> str:
    for character in "\\`*_|<>[]":
        text = text.replace(character, f"\\{character}")
    return text
