"""What the best of some families gains over the best of another, and whether it is as large as was published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import hypot

from idgnn.choices import Protocol
from idgnn.experiments.expectations import Comparison
from idgnn.experiments.table import Column
from idgnn.report.blocks import Block, Check, Line, Shown, Tally, printed, reaches
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

    def models(self) -> str:
        """Which ID-GNN over which GNN."""
        return " over ".join(filter(None, (_model(self.identity), _model(self.gnn))))


def comparison_of(table: ResultTable) -> Comparison | None:
    """The families that a table compares, if any."""
    return next((each for each in table.table.expectations if isinstance(each, Comparison)), None)


def gains(table: ResultTable) -> list[dict[Source, Gain]]:
    """For every column of a table that compares families: published and every protocol."""
    comparison = comparison_of(table)
    sources: list[Source] = [*([] if table.quick else ["published"]), *table.protocols]  # pyright: ignore
    if comparison is None:
        return []
    return [{each: _gain(table, comparison, column, each) for each in sources} for column in table.table.columns]


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

    def shown_gain(gain: Gain, check: Check | None) -> Shown:
        return Shown(_points(gain.gain) if gain.gain is not None else "not run", check, gain.models())

    def shown_level(gain: Gain, check: Check | None) -> Shown:
        return Shown(gain.identity.number if gain.identity else "not run", check, _model(gain.identity))

    title = "Gain of the best ID-GNN over the best GNN"
    gain = Block("gain", title, _GAIN_CAPTION, "column")
    level = Block("level", "Level of the best ID-GNN", _LEVEL_CAPTION, "column")
    needed_level = "{:.3f}".format
    return [
        _fill(gain, tables, shown_gain, lambda each: each.needed, _points, gain_check),
        _fill(level, tables, shown_level, lambda each: each.needed_level, needed_level, level_check),
    ]


def _fill(
    block: Block,
    tables: Sequence[ResultTable],
    shown: Callable[[Gain, Check | None], Shown],
    needed: Callable[[Gain], float | None],
    number: Callable[[float], str],
    judge: Callable[[Gain, Gain], Check | None],
) -> Block:
    found = [each for table in tables for each in gains(table)]
    protocols = list[Protocol](dict.fromkeys(source for each in found for source in each if source != "published"))
    lines, checks = list[Line](), {protocol: list[Check]() for protocol in protocols}
    for by_source in found:
        published = by_source["published"]
        bound = needed(published)
        cells = [Shown(""), Shown("")] if bound is None else [shown(published, None), Shown(number(bound))]
        for protocol in protocols:
            ours = by_source.get(protocol)
            check = judge(ours, published) if ours else None
            checks[protocol] += [check] if check is not None else []
            cells.append(shown(ours, check) if ours else Shown(""))
        lines.append(Line(published.column.title, tuple(cells), published.column.group))
    tallies = (Tally(block.title, protocol, tuple(checks[protocol])) for protocol in protocols)
    return block.with_lines(("published", "needed", *protocols), lines, tallies)


def _model(cell: Cell | None) -> str:
    return cell.runs[0].spec.row if cell is not None and cell.runs else ""


def _points(gain: float) -> str:
    return f"{100 * printed(gain):+.1f}"
