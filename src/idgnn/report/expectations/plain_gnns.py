"""Plain GNNs with the released settings give the published numbers: the ground that we compare on is the same."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.models import GNNS
from idgnn.report.blocks import Block, Head, Line, Shown
from idgnn.report.expectations.check import Tally, printed, within
from idgnn.report.expectations.noise import RULE, room_for_noise
from idgnn.report.layout import Heading, Row
from idgnn.report.tables import Table

_TITLE = "Plain GNNs with the released settings"
_CAPTION = (
    "Our mean minus the published one, and in brackets the largest difference that is within noise. Expected: all are, "
    f"because plain GNNs are the same networks in the paper and here. {RULE}"
)


def plain_gnns(tables: Sequence[Table]) -> Block | None:
    """A row for each column of Tables 2 and 3; None if neither is there."""
    chosen = [table for table in tables if table.layout.name in ("table2", "table3")]
    if not chosen:
        return None
    lines = tuple(
        Line(heading.title, tuple(_shown(table, heading, model.name) for model in GNNS), heading.group)
        for table in chosen
        for heading in table.layout.headings
    )
    checks = tuple(cell.check for line in lines for cell in line.cells if cell.check is not None)
    tally = Tally("Plain GNNs within noise of the published numbers", "released", checks)
    heads = tuple(Head(model.conv.upper()) for model in GNNS)
    return Block("plain-gnns", _TITLE, _CAPTION, "column", heads, lines, (tally,))


def _shown(table: Table, heading: Heading, row: str) -> Shown:
    cell = table.cell("released", Row(row, row), heading)
    assert cell is not None  # every column of Tables 2 and 3 has the models of the paper
    theirs = cell.published
    if theirs is None:
        return Shown(cell.number)
    if cell.mean is None:
        return Shown(cell.number, within(None, 0.0, False), f"published {theirs.mean:.3f}")
    difference, room = cell.mean - theirs.mean, room_for_noise(cell.std, cell.n, theirs.std)
    text = f"{printed(difference):+.3f} (±{room:.3f})"
    hint = f"{cell.number}, published {theirs.mean:.3f} ± {theirs.std or 0.0:.3f}"
    return Shown(text, within(difference, room, cell.n == cell.asked), hint)
