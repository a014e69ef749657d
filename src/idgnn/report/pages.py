"""The report as an HTML page, in Markdown and in LaTeX: what the templates need, and how each escapes texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from idgnn.report import details
from idgnn.report.blocks import VERDICT_SIGN
from idgnn.report.cells import RULE, SIGN, published_cell
from idgnn.report.charts import gain_bars, panels
from idgnn.report.gains import gains
from idgnn.report.ratios import ratios
from idgnn.report.report import Report
from idgnn.report.summary import best_networks, runs_by_table

_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "▲": r"$\uparrow$", "≈": r"$\approx$", "▼": r"$\downarrow$", "±": r"$\pm$", "✓": r"$\checkmark$", "✗": r"$\times$",
}  # fmt: skip


def page(report: Report) -> str:
    """One HTML page: no script, no network, light and dark, for screens of all sizes and for paper.

    The same records give the same bytes.
    """
    lead = Markup(report.lead("<em>{}</em>"))  # our own words
    return _render("page.html", report, lead=lead, details=details, panels=panels, gain_bars=gain_bars)


def markdown(report: Report) -> str:
    """As GitHub shows it: a summary, the expectations, the tables."""
    return _render("report.md", report, lead=report.lead("*{}*"), best=best_networks(report.tables))


def latex(report: Report) -> str:
    r"""All expectations and tables, for a document that uses the packages of its first line; each is a `table*`."""
    return _render("report.tex", report, gains=gains, cmidrules=_cmidrules)


def _render(template: str, report: Report, **content: Any) -> str:
    tex = template.endswith(".tex")  # braces and per cent signs are LaTeX's own
    environment = Environment(
        loader=PackageLoader("idgnn.report"),
        autoescape=template.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        block_start_string="<%" if tex else "{%",
        block_end_string="%>" if tex else "%}",
        variable_start_string="<<" if tex else "{{",
        variable_end_string=">>" if tex else "}}",
        comment_start_string="<#" if tex else "{#",
        comment_end_string="#>" if tex else "#}",
    )
    environment.filters |= {"md": escape_markdown, "tex": escape_latex, "anchor": _anchor, "unbroken": _unbroken}
    return environment.get_template(template).render(
        report=report, runs=runs_by_table(report.tables), ratios=ratios, rule=RULE, sign=SIGN,
        verdict_sign=VERDICT_SIGN, published_cell=published_cell, **content,
    )  # fmt: skip


def escape_latex(text: str) -> str:
    r"""A text with the special characters of LaTeX escaped.

    >>> print(escape_latex("a_b & 5 %"))
    a\_b \& 5 \%
    """
    return "".join(_TEX.get(character, character) for character in text)


def escape_markdown(text: str) -> str:
    """A text with the special characters of Markdown escaped."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


def _anchor(title: str) -> str:
    """The anchor that GitHub gives a heading.

    >>> _anchor("Table 2: Graph properties")
    'table-2-graph-properties'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _unbroken(text: str) -> str:
    """Keeps a number, its deviation and its sign on one line."""
    return text.replace(" ", "\u00a0")


def _cmidrules(groups: Sequence[tuple[str, Sequence[Any]]], start: int) -> str:
    """A rule under each group of columns."""
    found = []
    for _, columns in groups:
        found.append(rf"\cmidrule(lr){{{start}-{start + len(columns) - 1}}}")
        start += len(columns)
    return " ".join(found)
