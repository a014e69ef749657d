"""What identities are worth: the best ID-GNN over the best GNN, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from idgnn.report.cells import Cell
from idgnn.report.layout import IN_PAPER, Heading
from idgnn.report.tables import Line, Table

_GNN, _ID = IN_PAPER[:1], IN_PAPER[1:]


@dataclass(frozen=True)
class Gain:
    """The best of both kinds in a column, as the paper has them or as a protocol gave them."""

    heading: Heading
    line: Line
    gnn: Cell | None
    identity: Cell | None
    gnns_complete: bool  # every run of every GNN of the paper has a number
    identities_complete: bool

    @property
    def gain(self) -> float | None:
        """By how much the best ID-GNN is above the best GNN."""
        if self.gnn is None or self.identity is None or self.gnn.mean is None or self.identity.mean is None:
            return None
        return self.identity.mean - self.gnn.mean

    @property
    def deviation(self) -> float:
        """The standard deviation of the gain: those of the two that it is the difference of, added in quadrature."""
        return hypot(*(cell.std or 0.0 for cell in (self.gnn, self.identity) if cell is not None))


def gains(table: Table) -> list[tuple[Gain, Gain, Gain]]:
    """Published, `text` and `released` for every column of Tables 2 and 3, the ones that compare the families."""
    if table.layout.name not in ("table2", "table3"):
        return []
    return [
        (_gain(table, heading, "published"), _gain(table, heading, "text"), _gain(table, heading, "released"))
        for heading in table.layout.headings
    ]


def _gain(table: Table, heading: Heading, line: Line) -> Gain:
    gnns, identities = table.column(line, heading, _GNN), table.column(line, heading, _ID)
    best_gnn, best_id = table.best(line, heading, _GNN), table.best(line, heading, _ID)
    return Gain(heading, line, best_gnn, best_id, _complete(gnns), _complete(identities))


def _complete(cells: list[Cell]) -> bool:
    return all(cell.n == cell.asked for cell in cells)
