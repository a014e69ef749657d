"""Small tables of texts as HTML."""

from __future__ import annotations

from html import escape

from idgnn.report.blocks import Block, Line, Shown
from idgnn.report.expectations.check import Check


def block_as_html(block: Block) -> str:
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
        parts.append(f"<tbody>{title}{''.join(_line(line, starts) for line in lines)}</tbody>")
    table = f'<div class="scroll"><table class="block">{head}{"".join(parts)}</table></div>'
    title = f'<h3 id="{block.name}">{escape(block.title)}</h3><p class="rule">{escape(block.caption)}</p>'
    return f'<div class="part">{title}{table}</div>'


def _starts(block: Block) -> set[int]:
    """The places of the heads that begin a group."""
    found, place = set[int](), 0
    for group, number in block.head_groups():
        found |= {place} if group else set()
        place += number
    return found


def _line(line: Line, starts: set[int]) -> str:
    cells = "".join(_cell(cell, place in starts) for place, cell in enumerate(line.cells))
    return f"<tr><th>{escape(line.name)}</th>{cells}</tr>"


def _cell(cell: Shown, edge: bool) -> str:
    kind, sign = ("missing" if cell.text == "not run" else ""), ""
    if cell.check is not None and cell.sign:
        kind = css_class(cell.check)
        mark, _, later = cell.sign.partition(" ")
        sign = f" <b>{mark}</b>" + (f"<small> {later}</small>" if later else "")
    hint = f' title="{escape(cell.hint)}"' if cell.hint else ""
    kind = f"{kind} {'edge' * edge}".strip()
    return f'<td class="{kind}"{hint}><span>{escape(cell.text)}{sign}</span></td>'


def css_class(check: Check) -> str:
    """Gives a verdict its color."""
    return check.verdict.replace(" ", "-")
