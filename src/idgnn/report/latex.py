"""The tables in LaTeX, as in the paper: families as rows, tasks as columns."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.report.blocks import Block
from idgnn.report.cells import RULE, Cell, Status
from idgnn.report.expectations import expectations, headline
from idgnn.report.layout import Row
from idgnn.report.ratios import ratios
from idgnn.report.summary import run_summary
from idgnn.report.tables import SOURCES, ResultTable, Source, gains

_SIGN: dict[Status, str] = {"above": r"$\uparrow$", "within": r"$\approx$", "below": r"$\downarrow$"}
_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "▲": r"$\uparrow$", "≈": r"$\approx$", "▼": r"$\downarrow$", "±": r"$\pm$", "✓": r"$\checkmark$", "✗": r"$\times$",
}  # fmt: skip


def latex(tables: Sequence[ResultTable]) -> str:
    r"""All expectations and tables, for a document that uses the packages of its first line; each is a `table*`."""
    blocks = expectations(tables)
    sentences = (*run_summary(tables).sentences(), *headline(blocks))
    parts = [
        r"% \usepackage{amssymb,booktabs,multirow,graphicx}",
        *(f"% {line}" for line in sentences),
        *map(_block, blocks),
    ]
    for table in tables:
        beside = ratios(table)
        parts += [_table(table), *([_block(beside)] if beside else [])]
    return "\n".join(parts) + "\n"


def _block(block: Block) -> str:
    columns = len(block.heads) + 1
    body = []
    if any(head.group for head in block.heads):
        groups = [rf"\multicolumn{{{number}}}{{c}}{{{escape(group)}}}" for group, number in block.head_groups()]
        body.append(f"& {' & '.join(groups)} \\\\")
    body.append(" & ".join(escape(title) for title in (block.corner, *(head.title for head in block.heads))) + r" \\")
    for group, lines in block.line_groups():
        body.append(r"\midrule")
        body += [rf"\multicolumn{{{columns}}}{{l}}{{\textbf{{{escape(group)}}}}} \\"] if group else []
        body += [" & ".join(map(escape, (line.name, *(cell.whole for cell in line.cells)))) + r" \\" for line in lines]
    caption = f"{block.title}. {block.caption}"
    return _floating(block.title, caption, f"tab:{block.name}", "l" + "c" * len(block.heads), body)


def _table(table: ResultTable) -> str:
    headings, groups = table.layout.headings, table.groups()
    tasks, rules, start = [], [], 4
    for group, each in groups:
        tasks.append(rf"\multicolumn{{{len(each)}}}{{c}}{{{escape(group)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{start + len(each) - 1}}}")
        start += len(each)
    body = [f"& & & {' & '.join(tasks)} \\\\", " ".join(rules)] if any(group for group, _ in groups) else []
    body.append(" & ".join(["", "", "", *(rf"\texttt{{{escape(each.title)}}}" for each in headings)]) + r" \\")
    for family, rows in table.families():
        lines: list[tuple[Row, Source]] = [(row, each) for row in rows for each in table.sources(row, headings)]
        body.append(r"\midrule")
        for place, (row, source) in enumerate(lines):
            title = escape(row.title) if not place or lines[place - 1][0] is not row else ""
            left = rf"\multirow{{{len(lines)}}}{{*}}{{{escape(family)}}}" if family and not place else ""
            cells = [_cell(table.cell(source, row.name, each), table.mark(source, row, each)) for each in headings]
            body.append(" & ".join([left, title, source, *cells]) + r" \\")
    body += _gains(table)
    title, caption = table.layout.title, f"{table.layout.title}. {RULE} {table.layout.note}".strip()
    return _floating(title.partition(":")[0], caption, f"tab:{table.layout.name}", "lll" + "c" * len(headings), body)


def _floating(title: str, caption: str, label: str, columns: str, body: Sequence[str]) -> str:
    begin = [
        f"\n% {escape(title)}",
        r"\begin{table*}[t]",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{{label}}}",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",  # smaller if it is too wide
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    return "\n".join([*begin, *body, r"\bottomrule", r"\end{tabular}}", r"\end{table*}"])


def _gains(table: ResultTable) -> list[str]:
    found = gains(table)
    lines = [r"\midrule"] if found else []
    for place, source in enumerate(SOURCES if found else ()):
        title = r"\multirow{3}{*}{Best ID-GNN over best GNN}" if not place else ""
        lines.append(" & ".join([title, "", source, *(_percent(three[place].gain) for three in found)]) + r" \\")
    return lines


def _cell(cell: Cell | None, mark: str) -> str:
    if cell is None:
        return ""
    number = escape(cell.number.replace(" ± ", "±"))
    number = rf"\textbf{{{number}}}" if mark else number
    number = rf"\underline{{{number}}}" if mark == "column" else number
    return number + _SIGN.get(cell.status, "") + (f" ({cell.share})" if cell.share else "")


def _percent(gain: float | None) -> str:
    return "" if gain is None else rf"{100 * gain:.1f}\%"


def escape(text: str) -> str:
    r"""A text with the special characters of LaTeX escaped.

    >>> print(escape("a_b & 5 %"))
    a\_b \& 5 \%
    """
    return "".join(_ESCAPED.get(character, character) for character in text)
