"""What identities are worth: the best ID-GNN over the best GNN, column by column, and whether that is as expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from idgnn.report.cells import Cell
from idgnn.report.layout import IN_PAPER, PROTOCOLS, Heading
from idgnn.report.tables import Line, Table

Verdict = Literal["met", "missed", "open"]
TICK: dict[Verdict, str] = {"met": "✓", "missed": "✗", "open": "·"}
EXPECTED = (
    "Expected in every column: the best ID-GNN is above the best GNN by at least the published margin minus one "
    "standard deviation (margin), and at or above the published best minus one standard deviation (best). One standard "
    "deviation is the larger of ours and the published one, of the best ID-GNN. ✓ met, ✗ missed, · open: some of the "
    "12 models have no result yet."
)
_GNN, _ID = IN_PAPER[:1], IN_PAPER[1:]


@dataclass(frozen=True)
class Gain:
    """The best of both kinds in a column, as the paper has them and as a protocol gave them."""

    heading: Heading
    line: Line
    gnn: Cell | None
    identity: Cell | None
    complete: bool  # every model of the paper has a number
    published: Gain | None = None

    @property
    def gain(self) -> float | None:
        """By how much the best ID-GNN is above the best GNN."""
        if self.gnn is None or self.identity is None or self.gnn.mean is None or self.identity.mean is None:
            return None
        return self.identity.mean - self.gnn.mean

    @property
    def margin(self) -> Verdict:
        """Whether the gain is at least the published one, minus one standard deviation."""
        return self._at_least(self.gain, self.published.gain if self.published else None)

    @property
    def best(self) -> Verdict:
        """Whether the best ID-GNN is at least the published best, minus one standard deviation."""
        theirs = self.published.identity if self.published else None
        return self._at_least(self.identity.mean if self.identity else None, theirs.mean if theirs else None)

    def _at_least(self, ours: float | None, theirs: float | None) -> Verdict:
        if not self.complete or ours is None or theirs is None or self.identity is None:
            return "open"
        digits = self.identity.digits
        stds = (self.identity.std, self.published and self.published.identity and self.published.identity.std)
        room = max(round(std or 0.0, digits) for std in stds)
        return "met" if round(round(ours, digits) - round(theirs, digits) + room, digits) >= 0 else "missed"


def gains(table: Table) -> list[tuple[Gain, Gain, Gain]]:
    """Published, `text` and `released` for every column of Tables 2 and 3, the ones that compare the families."""
    if table.layout.name not in ("table2", "table3"):
        return []
    found = []
    for heading in table.layout.headings:
        published = _gain(table, heading, "published", None)
        text, released = (_gain(table, heading, protocol, published) for protocol in PROTOCOLS)
        found.append((published, text, released))
    return found


def _gain(table: Table, heading: Heading, line: Line, published: Gain | None) -> Gain:
    cells = table.column(line, heading, IN_PAPER)
    complete = bool(cells) and all(cell.mean is not None for cell in cells)
    best_gnn, best_id = (table.best(line, heading, families) for families in (_GNN, _ID))
    return Gain(heading, line, best_gnn, best_id, complete, published)
