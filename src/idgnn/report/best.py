"""Tables 2 and 3 at a glance: the best network of each kind in every column."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.report.blocks import Block, Head, Line, Shown
from idgnn.report.cells import Cell
from idgnn.report.gains import gains
from idgnn.report.layout import BEYOND
from idgnn.report.tables import Table

_HEADS = (
    Head("GNN", "published"),
    Head("ID-GNN", "published"),
    Head("GNN", "text"),
    Head("ID-GNN", "text"),
    Head("beyond the paper", "text"),
    Head("GNN", "released"),
    Head("ID-GNN", "released"),
)
_CAPTION = (
    "The best of the four GNNs, of the eight ID-GNNs of the paper, and of what goes beyond it: means over the seeds "
    "that are there. ROC AUC for links and ogbg-molhiv, accuracy for all else."
)


def best_networks(tables: Sequence[Table]) -> Block | None:
    """A row for each column of Tables 2 and 3; None if neither is there."""
    lines = []
    for table in tables:
        beyond = [row.family for row in table.layout.rows if row.family.endswith(BEYOND)]
        for published, text, released in gains(table):
            further = table.best("text", text.heading, beyond)
            pairs = [(each.gnn, each.identity) for each in (published, text, released)]
            cells = (*pairs[0], *pairs[1], further, *pairs[2])
            lines.append(Line(text.heading.title, tuple(Shown(_mean(cell)) for cell in cells), text.heading.group))
    return Block("best", "The best of each kind", _CAPTION, "column", _HEADS, tuple(lines)) if lines else None


def _mean(cell: Cell | None) -> str:
    return "" if cell is None or cell.mean is None else f"{cell.mean:.{cell.digits}f}"
