"""ID-GNN-Full with messages colored as Eq. 3 has it solves clustering coefficients and shortest paths."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.models import CONVS, FULL
from idgnn.report.blocks import Block, Head, Line, Shown
from idgnn.report.expectations.check import Check, Tally, at_least
from idgnn.report.layout import Heading, Row
from idgnn.report.tables import Table

# By the beginning of a column's name: the architectures from which it is expected, and the least score.
_EXPECTED: dict[str, tuple[tuple[str, ...], float]] = {"node": (("gcn", "gin"), 0.95), "path": (CONVS, 0.99)}
_NAMES = {"node": "Clustering of nodes: ID-GCN and ID-GIN", "path": "Shortest paths: all four ID-GNN-Full"}
_CAPTION = (
    "Accuracy of ID-GNN-Full under the protocol of the text, where every architecture colors its messages as Eq. 3 "
    "has it. Expected on clustering coefficients of nodes: GCN and GIN at least 0.95; on shortest path distances: all "
    "four at least 0.99. Where there is no sign nothing is expected."
)


def full_by_architecture(tables: Sequence[Table]) -> Block | None:
    """A row for each column on nodes' clustering and on shortest paths; None if Table 2 is not there."""
    table = next((table for table in tables if table.layout.name == "table2"), None)
    if table is None:
        return None
    lines, checks = list[Line](), {kind: list[Check]() for kind in _EXPECTED}
    for heading in table.layout.headings:
        kind = heading.name.partition("-")[0]
        if kind not in _EXPECTED:
            continue
        cells = [_shown(table, heading, model.name, model.conv, kind) for model in FULL]
        checks[kind] += [cell.check for cell in cells if cell.check is not None]
        lines.append(Line(heading.title, tuple(cells), heading.group))
    tallies = (Tally(f"{_NAMES[kind]} at least {_EXPECTED[kind][1]}", "text", tuple(checks[kind])) for kind in checks)
    heads = tuple(Head(conv.upper()) for conv in CONVS)
    return Block("full", "ID-GNN-Full by architecture", _CAPTION, "column", heads, tuple(lines), tuple(tallies))


def _shown(table: Table, heading: Heading, row: str, conv: str, kind: str) -> Shown:
    cell = table.cell("text", Row(row, row), heading)
    assert cell is not None  # every column of Table 2 has the models of the paper
    convs, least = _EXPECTED[kind]
    check = at_least(cell.mean, least, cell.n == cell.asked) if conv in convs else None
    return Shown(cell.number, check, f"{cell.n} of {cell.asked} runs")
