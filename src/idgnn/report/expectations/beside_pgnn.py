"""Table 5: ID-GNN-Full is above P-GNN on link prediction."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.table5 import PGNN
from idgnn.report.blocks import Block, Head, Line, Shown
from idgnn.report.cells import Cell
from idgnn.report.expectations.check import Check, Tally, above, printed
from idgnn.report.layout import PROTOCOLS, Heading, Row
from idgnn.report.tables import LINES, Table
from idgnn.report.tables import Line as Kind

_CAPTION = "ROC AUC of link prediction. Expected: the best of the four ID-GNN-Full is above P-GNN, as in Table 5."
_FULL = "ID-GNN-Full"


def beside_pgnn(tables: Sequence[Table]) -> Block | None:
    """Three rows for each column of Table 5: published, text, released; None if it is not there."""
    table = next((table for table in tables if table.layout.name == "table5"), None)
    if table is None:
        return None
    headings = table.layout.headings
    lines = tuple(_line(table, kind, heading) for heading in headings for kind in LINES)
    tallies = tuple(
        Tally("Table 5: ID-GNN-Full above P-GNN", protocol, tuple(_check(table, protocol, each) for each in headings))
        for protocol in PROTOCOLS
    )
    heads = tuple(map(Head, ("best ID-GNN-Full", "P-GNN", "difference")))
    return Block("beside-pgnn", "ID-GNN-Full and P-GNN", _CAPTION, "", heads, lines, tallies)


def _check(table: Table, kind: Kind, heading: Heading) -> Check:
    full, pgnn = _cells(table, kind, heading)
    rests_on = [pgnn, *table.column(kind, heading, (_FULL,))]
    complete = all(cell is not None and cell.n == cell.asked for cell in rests_on)
    return above(full.mean if full else None, pgnn.mean if pgnn else None, complete)


def _line(table: Table, kind: Kind, heading: Heading) -> Line:
    check = _check(table, kind, heading)
    text = "not run" if check.found is None else f"{printed(check.found):+.3f}"
    numbers = [Shown(cell.number if cell else "") for cell in _cells(table, kind, heading)]
    difference = Shown(text, None if kind == "published" else check)
    return Line(kind, (*numbers, difference), f"{heading.group}, {heading.title}")


def _cells(table: Table, kind: Kind, heading: Heading) -> tuple[Cell | None, Cell | None]:
    full, pgnn = (table.cell(kind, Row(name, name), heading) for name in ("best-full", PGNN))
    return full, pgnn
