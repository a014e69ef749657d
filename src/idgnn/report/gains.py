"""What the best of some families gains over the best of another, and whether it is as large as was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot

from idgnn.choices import Protocol
from idgnn.experiments.expectations import Comparison
from idgnn.experiments.grid import PROTOCOLS
from idgnn.experiments.table import Column
from idgnn.report.blocks import Block, Check, Line, Shown, heads, printed, reaches
from idgnn.report.cells import Cell, best_cell
from idgnn.report.results import ResultTable, Source

_GAIN_CAPTION = (
    "In percentage points: the best of the eight ID-GNNs of the paper minus the best of its four GNNs. Needed is the "
    "published gain minus one standard deviation: the published ones of the best ID-GNN and of the best GNN, added in "
    "quadrature."
)
_LEVEL_CAPTION = (
    "The score of the best of the eight ID-GNNs of the paper. Needed is the published score minus its published "
    "standard deviation."
)


@dataclass(frozen=True)
class Gain:
    """The best GNN and the best ID-GNN in a column, from one source."""

    column: Column
    source: Source
    gnn: Cell | None
    identity: Cell | None
    gnns_complete: bool  # every run of every GNN has a number
    identities_complete: bool

    @property
    def gain(self) -> float | None:
        """By how much the best ID-GNN is better than the best GNN."""
        if self.gnn is None or self.identity is None or self.gnn.mean is None or self.identity.mean is None:
            return None
        return self.column.gain(self.identity.mean, self.gnn.mean)

    @property
    def needed(self) -> float | None:
        """The gain minus its standard deviation: those of both cells, added in quadrature."""
        deviation = hypot(*(cell.std or 0.0 for cell in (self.gnn, self.identity) if cell is not None))
        return None if self.gain is None else printed(self.gain) - printed(deviation)

    @property
    def needed_level(self) -> float | None:
        """The score of the best ID-GNN but for one standard deviation."""
        best = self.identity
        if best is None or best.mean is None:
            return None
        return printed(best.mean) - self.column.gain(printed(best.std or 0.0), 0.0)


def comparison_of(table: ResultTable) -> Comparison | None:
    """The families that a table compares, if any."""
    return next((each for each in table.table.expectations if isinstance(each, Comparison)), None)


def gains(table: ResultTable) -> list[dict[Source, Gain]]:
    """For every column of a table that compares families: published and every protocol that it has."""
    if (comparison := comparison_of(table)) is None:
        return []
    gnns, identities, found = (comparison.over,), comparison.of, []
    for column in table.table.columns:
        by_source = dict[Source, Gain]()
        for source in table.all_sources:
            cells = [table.column(source, column, families) for families in (gnns, identities)]
            if source == "published" or any(cells):
                gnn, identity = (best_cell(each, column) for each in cells)
                complete = (all(cell.complete for cell in each) for each in cells)
                by_source[source] = Gain(column, source, gnn, identity, *complete)
        found.append(by_source)
    return found


def gain_check(ours: Gain, published: Gain) -> Check | None:
    """Whether the gain is as large as was published; None where nothing was."""
    complete = ours.gnns_complete and ours.identities_complete
    return None if published.needed is None else reaches(ours.gain, published.needed, complete)


def level_check(ours: Gain, published: Gain) -> Check | None:
    """Whether the best ID-GNN is as good as was published; None where nothing was."""
    mean, needed = ours.identity.mean if ours.identity else None, published.needed_level
    return None if needed is None else reaches(mean, needed, ours.identities_complete, ours.column.lower_is_better)


def gain_and_level(tables: Sequence[ResultTable]) -> list[Block]:
    """Two expectations: a row for each column of the tables that compare families."""
    found = [each for table in tables for each in gains(table)]
    protocols: list[Protocol] = [each for each in PROTOCOLS if any(each in by_source for by_source in found)]
    made = []
    for name, title, caption, show, needed in (
        ("gain", "Gain of the best ID-GNN over the best GNN", _GAIN_CAPTION, _shown_gain, _needed_gain),
        ("level", "Level of the best ID-GNN", _LEVEL_CAPTION, _shown_level, _needed_level),
    ):
        lines = []
        for by_source in found:
            published = by_source["published"]
            cells = [replace(show(published, published), check=None), Shown(needed(published))]
            for protocol in protocols:
                ours = by_source.get(protocol)
                cells.append(replace(show(ours, published), counts=(title, protocol)) if ours else Shown(""))
            lines.append(Line(published.column.title, tuple(cells), published.column.group))
        made.append(Block(name, title, caption, "column", heads("published", "needed", *protocols), tuple(lines)))
    return made


def _shown_gain(gain: Gain, published: Gain) -> Shown:
    models = " over ".join(filter(None, (_model(gain.identity), _model(gain.gnn))))
    text = ("" if gain is published else "not run") if gain.gain is None else _points(gain.gain)
    return Shown(text, gain_check(gain, published), models)


def _needed_gain(published: Gain) -> str:
    return "" if published.needed is None else _points(published.needed)


def _shown_level(gain: Gain, published: Gain) -> Shown:
    text = gain.identity.text if gain.identity else "" if gain is published else "not run"
    return Shown(text, level_check(gain, published), _model(gain.identity))


def _needed_level(published: Gain) -> str:
    return "" if published.needed_level is None else f"{published.needed_level:.3f}"


def _model(cell: Cell | None) -> str:
    return cell.runs[0].spec.row if cell is not None and cell.runs else ""


def _points(gain: float) -> str:
    return f"{100 * printed(gain):+.1f}"
