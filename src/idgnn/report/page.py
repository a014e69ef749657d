"""The report as one HTML page: no script, no network, light and dark, for screens of all sizes and for paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from idgnn.experiments.paper_table import CONVS
from idgnn.experiments.published import BEST
from idgnn.report.blocks import Block, Line, Shown
from idgnn.report.cells import RULE, SIGN, Cell, Status
from idgnn.report.charts import chart, gain_bars, mean_curve, span
from idgnn.report.details import details
from idgnn.report.expectations import expectations, total
from idgnn.report.layout import BEYOND, IN_PAPER, PROTOCOLS, Heading, Row
from idgnn.report.ratios import ratios
from idgnn.report.summary import run_summary, runs_by_table
from idgnn.report.tables import SOURCES, ResultTable, Source, gains

_LEAD = (
    "Each number as it was published, as we get it when we follow the <em>text</em> of the paper, and with the "
    "settings of the <em>released</em> code. Click on a number for its runs, settings, command and learning curves."
)
_STATUSES: tuple[Status, ...] = ("above", "within", "below")


def page(tables: Sequence[ResultTable]) -> str:
    """The whole page. The same records give the same bytes."""
    style = files("idgnn.report").joinpath("page.css").read_text(encoding="utf-8")
    blocks = expectations(tables)
    names = [("expectations", "What the paper leads us to expect", "Expectations")] if blocks else []
    names += [(each.layout.name, each.layout.title, each.layout.title.partition(":")[0]) for each in tables]
    links = "".join(f'<a href="#{name}" title="{escape(title)}">{escape(short)}</a>' for name, title, short in names)
    views = "".join(
        f'<label><input type="radio" name="view" id="only-{name}"{" checked" * (name == "all")}>{title}</label>'
        for name, title in (("all", "side by side"), *((source, source) for source in SOURCES))
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark"><title>ID-GNN: the tables of the paper</title>',
            f"<style>\n{style}</style></head><body>",
            f"<header><h1>Identity-aware GNNs: the tables of the paper</h1><p>{_LEAD}</p></header>",
            _summary(tables, blocks),
            f'<nav><span class="links">{links}</span><fieldset><legend>show</legend>{views}</fieldset></nav>',
            _expectations(blocks),
            *(_section(table) for table in tables),
            "</body></html>\n",
        ]
    )


def _summary(tables: Sequence[ResultTable], blocks: Sequence[Block]) -> str:
    known = run_summary(tables)
    failed = f", {known.failed} failed" if known.failed else ""
    cards = [
        _card("runs", f"{known.finished:,}", f"of {known.total:,}{failed}"),
        _card("GPU hours", f"{known.hours(gpu=True):,.1f}", f"and {known.hours(gpu=False):,.1f} CPU hours"),
    ]
    for protocol in PROTOCOLS:
        tally = total(blocks, protocol)
        not_run = tally.number("not run")
        rest = f"of {len(tally.checks)}" + (f", {not_run} not run" if not_run else "")
        if tally.checks:
            cards.append(_card(f"expectations that hold, {protocol}", f"{tally.number('holds')}", rest))
    rows = []
    for family in IN_PAPER:
        for protocol in PROTOCOLS:
            counted = Counter[Status]()
            for table in tables:
                for heading in table.layout.headings:
                    counted.update(cell.status for cell in table.column(protocol, heading, (family,)))
            if any(counted[status] for status in _STATUSES):
                rows.append(f"<tr><th>{escape(family)}</th><td>{protocol}</td><td>{_shares(counted)}</td></tr>")
    sentences = "".join(f"<li>{escape(each)}</li>" for each in known.sentences())
    return (
        f'<section class="summary"><div class="cards">{"".join(cards)}</div><div class="two">'
        f'<div><h2>Beside the published numbers</h2><table class="shares"><tbody>{"".join(rows)}</tbody></table>'
        f'<p class="rule">{escape(RULE)}</p></div><div><h2>Where the numbers come from</h2><ul>{sentences}</ul></div>'
        f"</div><details><summary>Runs by table</summary>{_block(runs_by_table(tables))}</details></section>"
    )


def _expectations(blocks: Sequence[Block]) -> str:
    if not blocks:
        return ""
    shown = "".join(map(_block, blocks))
    return f'<section id="expectations"><h2>Expectations</h2><div class="parts">{shown}</div></section>'


def _card(title: str, number: str, rest: str) -> str:
    return f'<div class="card"><span>{escape(title)}</span><b>{escape(number)}</b> <small>{escape(rest)}</small></div>'


def _shares(counted: Counter[Status]) -> str:
    parts = (
        f'<span class="{status}" style="flex:{counted[status]}" title="{counted[status]} {status}">'
        f"{SIGN[status]} {counted[status]}</span>"
        for status in _STATUSES
        if counted[status]
    )
    return f'<span class="stack">{"".join(parts)}</span>'


def _section(table: ResultTable) -> str:
    found, bars = gains(table), ""
    if found:
        keys = "".join(f'<span class="key {source}">{source}</span>' for source in SOURCES)
        caption = f"{keys} In percentage points; behind the number, whether gain and level are as expected."
        bars = f'<h3>Gain of the best ID-GNN over the best GNN</h3><p class="rule">{caption}</p>{gain_bars(found)}'
    note = f'<p class="rule">{escape(table.layout.note)}</p>' if table.layout.note else ""
    title, ratio = f"<h2>{escape(table.layout.title)}</h2>", ratios(table)
    beside = _block(ratio) if ratio else ""
    return f'<section id="{table.layout.name}">{title}{note}{_numbers(table)}{beside}{bars}{_curves(table)}</section>'


def _numbers(table: ResultTable) -> str:
    headings, popovers = table.layout.headings, list[str]()
    tasks = "".join(f'<th colspan="{len(each)}"><span>{escape(group)}</span></th>' for group, each in table.groups())
    starts = {each[0].name for _, each in table.groups()}
    parts = [f"<thead><tr><td></td>{tasks}</tr></thead>"] if any(group for group, _ in table.groups()) else []
    for family, rows in table.families():
        names = "".join(f'<th class="{_edge(each, starts)}">{escape(each.title)}</th>' for each in headings)
        title = f'<tr class="title"><th colspan="{len(headings) + 1}"><span>{escape(family)}</span></th></tr>'
        kind = ' class="beyond"' if family.endswith(BEYOND) else ""
        parts.append(f'<tbody{kind}>{title if family else ""}<tr class="family"><th></th>{names}</tr>')
        for row in rows:
            sources = table.sources(row, headings)
            labels = "".join(f'<span class="line {source}">{source}</span>' for source in sources)
            parts.append(
                f'<tr><th><div><span class="model">{escape(row.title)}</span>'
                f'<span class="labels">{labels}</span></div></th>'
            )
            for heading in headings:
                shown = [_value(table, source, row, heading, popovers) for source in sources]
                parts.append(f'<td class="{_edge(heading, starts)}">{"".join(shown)}</td>')
            parts.append("</tr>")
        parts.append("</tbody>")
    return (
        f'<div class="scroll"><table class="numbers{" few" * (len(headings) < 9)}">{"".join(parts)}</table></div>\n'
        + "\n".join(popovers)
    )


def _edge(heading: Heading, starts: set[str]) -> str:
    return "edge" if heading.name in starts else ""


def _value(table: ResultTable, source: Source, row: Row, heading: Heading, popovers: list[str]) -> str:
    cell, mark = table.cell(source, row.name, heading), table.mark(source, row, heading)
    if cell is None:
        return f'<span class="line {source}"></span>'
    kind = f"line {source} {cell.status} {mark and f'best-{mark}'}".rstrip()
    if source == "published":
        return f'<span class="{kind}">{_number(cell)}</span>'
    name = f"{table.layout.name}-{source}-{len(popovers)}"
    popovers.append(details(table, row, heading, cell, name))
    return f'<button class="{kind}" popovertarget="{name}" title="{cell.status}">{_number(cell)}</button>'


def _number(cell: Cell) -> str:
    mean, _, std = cell.number.partition(" ± ")
    spread = f"<small>±{std}</small>" if std else ""
    share = f"<sup>{cell.n}/{cell.total}</sup>" if cell.share else ""
    return f"<span>{mean}</span>{spread}{share}<i>{SIGN[cell.status]}</i>"


def _curves(table: ResultTable) -> str:
    parts = []
    for heading in (each for each in table.layout.headings if each.at == "last"):
        panels = []
        for protocol in PROTOCOLS:
            for family, rows in table.families([heading]):
                cells = [(row, table.cell(protocol, row.name, heading)) for row in rows if row.name not in BEST]
                drawn = [
                    mean_curve(cell, heading.metric, row.title, row.name.rpartition("-")[2])
                    for row, cell in cells
                    if cell is not None
                ]
                panels.append((f"{family}, {protocol}", [curve for curve in drawn if curve is not None]))
        limits = span([curve for _, curves in panels for curve in curves])
        figures = "".join(
            f"<figure><figcaption>{escape(title)}</figcaption>{chart(curves, limits, title)}</figure>"
            for title, curves in panels
            if curves
        )
        if figures:
            name = f"{escape(heading.title)} <span>{escape(heading.group)}</span>"
            parts.append(f'<details><summary>{name}</summary><div class="panels">{figures}</div></details>')
    keys = "".join(f'<span class="key {each}">{each.upper()}</span>' for each in CONVS)
    caption = "Score on the validation part by epoch, mean over the seeds."
    return f'<h3>Learning curves</h3><p class="rule">{caption} {keys}</p>{"".join(parts)}' if parts else ""


def _block(block: Block) -> str:
    """A title, how to read it, and the table."""
    width, parts = len(block.heads) + 1, list[str]()
    if any(head.group for head in block.heads):
        groups = (f'<th colspan="{n}"><span>{escape(group)}</span></th>' for group, n in block.head_groups())
        parts.append(f'<tr class="shared"><td></td>{"".join(groups)}</tr>')
    starts = _starts(block)
    names = (
        f'<th class="{"edge" * (place in starts)}">{escape(head.title)}</th>' for place, head in enumerate(block.heads)
    )
    parts.append(f"<tr><th>{escape(block.corner)}</th>{''.join(names)}</tr>")
    head, parts = f"<thead>{''.join(parts)}</thead>", []
    for group, lines in block.line_groups():
        title = f'<tr class="title"><th colspan="{width}">{escape(group)}</th></tr>' if group else ""
        parts.append(f"<tbody>{title}{''.join(_block_line(line, starts) for line in lines)}</tbody>")
    table = f'<div class="scroll"><table class="block">{head}{"".join(parts)}</table></div>'
    title = f'<h3 id="{block.name}">{escape(block.title)}</h3><p class="rule">{escape(block.caption)}</p>'
    return f'<div class="part">{title}{table}</div>'


def _starts(block: Block) -> set[int]:
    """The positions of the heads that start a group."""
    found, place = set[int](), 0
    for group, number in block.head_groups():
        found |= {place} if group else set()
        place += number
    return found


def _block_line(line: Line, starts: set[int]) -> str:
    cells = "".join(_block_cell(cell, place in starts) for place, cell in enumerate(line.cells))
    return f"<tr><th>{escape(line.name)}</th>{cells}</tr>"


def _block_cell(cell: Shown, edge: bool) -> str:
    kind, sign = ("missing" if cell.text == "not run" else ""), ""
    if cell.check is not None and cell.sign:
        kind = cell.check.css_class
        mark, _, later = cell.sign.partition(" ")
        sign = f" <b>{mark}</b>" + (f"<small> {later}</small>" if later else "")
    hint = f' title="{escape(cell.hint)}"' if cell.hint else ""
    kind = f"{kind} {'edge' * edge}".strip()
    return f'<td class="{kind}"{hint}><span>{escape(cell.text)}{sign}</span></td>'
