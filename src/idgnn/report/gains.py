"""What the best of some families gains over the best of another, and whether it is as large as was published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot

from idgnn.choices import Protocol
from idgnn.experiments.expectations import Comparison
from idgnn.experiments.grid import PROTOCOLS
from idgnn.experiments.table import Column
from idgnn.report.blocks import Block, Check, Line, Shown, heads, printed, reaches
from idgnn.report.cells import Cell
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
    """For every column of a table that compares families: published and every protocol."""
    comparison = comparison_of(table)
    if comparison is None:
        return []
    families = (comparison.over, *comparison.of)
    return [
        {
            source: _gain(table, comparison, column, source)
            for source in table.all_sources
            if source == "published" or table.column(source, column, families)
        }
        for column in table.table.columns
    ]


def _gain(table: ResultTable, comparison: Comparison, column: Column, source: Source) -> Gain:
    gnns, identities = (comparison.over,), comparison.of
    complete = (all(cell.complete for cell in table.column(source, column, each)) for each in (gnns, identities))
    return Gain(column, source, table.best(source, column, gnns), table.best(source, column, identities), *complete)


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
    titles = heads("published", "needed", *protocols)
    gain, level = "Gain of the best ID-GNN over the best GNN", "Level of the best ID-GNN"
    of_gain = tuple(_line(each, protocols, each["published"].needed, _points, _shown_gain, gain) for each in found)
    of_level = tuple(
        _line(each, protocols, each["published"].needed_level, "{:.3f}".format, _shown_level, level) for each in found
    )
    return [
        Block("gain", gain, _GAIN_CAPTION, "column", titles, of_gain),
        Block("level", level, _LEVEL_CAPTION, "column", titles, of_level),
    ]


def _line(
    by_source: Mapping[Source, Gain],
    protocols: Sequence[Protocol],
    needed: float | None,
    number: Callable[[float], str],
    show: Callable[[Gain, Gain], Shown],
    title: str,
) -> Line:
    published = by_source["published"]
    cells = [Shown(""), Shown("")]
    if needed is not None:
        cells = [replace(show(published, published), check=None), Shown(number(needed))]
    for protocol in protocols:
        ours = by_source.get(protocol)
        cells.append(replace(show(ours, published), counts=(title, protocol)) if ours else Shown(""))
    return Line(published.column.title, tuple(cells), published.column.group)


def _shown_gain(gain: Gain, published: Gain) -> Shown:
    models = " over ".join(filter(None, (_model(gain.identity), _model(gain.gnn))))
    return Shown("not run" if gain.gain is None else _points(gain.gain), gain_check(gain, published), models)


def _shown_level(gain: Gain, published: Gain) -> Shown:
    best = gain.identity
    return Shown(best.number if best else "not run", level_check(gain, published), _model(best))


def _model(cell: Cell | None) -> str:
    return cell.runs[0].spec.row if cell is not None and cell.runs else ""


def _points(gain: float) -> str:
    return f"{100 * printed(gain):+.1f}"
