"""The geometry of learning curves and of bars; the template of the page draws them, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor

from idgnn.experiments.readings import curve, mean_curve
from idgnn.experiments.table import Column
from idgnn.report.blocks import Check
from idgnn.report.cells import Cell
from idgnn.report.gains import Gain, gain_check, gains, level_check
from idgnn.report.results import ResultTable, Source

Points = Sequence[tuple[int, float]]
_HEIGHT = 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 8, 8, 20
_POINTS = 50
_KINDS = 4  # colors and dashes


@dataclass(frozen=True)
class Curve:
    """A score over the epochs; `kind` is the class that gives it its color and dashes."""

    label: str
    kind: str
    points: Points


@dataclass(frozen=True)
class Chart:
    """Curves in one frame, in the coordinates of an SVG."""

    width: int
    height: int
    left: int
    right: int
    rows: list[tuple[str, str]]  # height of a line, its label
    epochs: list[tuple[str, str, str]]  # place, label, anchor
    published: str | None  # height of the published score
    paths: list[tuple[Curve, str]]


def seed_curves(cell: Cell, metric: str) -> list[Curve]:
    """The score on the validation part of every run of a cell."""
    found = [(run.spec.seed, _thin(curve(run.record, metric))) for run in cell.runs]
    several = len({seed for seed, _ in found}) > 1
    return [
        Curve(f"seed {seed}" if several else f"run {number}", f"k{number % _KINDS}", points)
        for number, (seed, points) in enumerate(found)
        if points
    ]


def _thin(scores: dict[int, float]) -> Points:
    """As many points as can be distinguished, the last among them."""
    points = list(scores.items())
    return points[:: -max(len(points) // _POINTS, 1)][::-1]


def span(curves: Sequence[Curve]) -> tuple[float, float]:
    """The limits of an axis: tenths, between which all curves lie."""
    scores = [score for each in curves for _, score in each.points] or [0.0, 1.0]
    low, high = floor(10 * min(scores) + 1e-9) / 10, ceil(10 * max(scores) - 1e-9) / 10
    return (low, high) if high > low else (low, low + 0.1)


def draw(
    curves: Sequence[Curve], limits: tuple[float, float], published: float | None = None, width: int = 300
) -> Chart:
    """Curves in one frame; a dashed line marks the published score."""
    low, high = limits
    last = max((epoch for each in curves for epoch, _ in each.points), default=1)

    def x(epoch: float) -> str:
        return f"{_LEFT + epoch / last * (width - _LEFT - _RIGHT):.1f}"

    def y(score: float) -> str:
        return f"{_HEIGHT - _BOTTOM - (score - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM):.1f}"

    return Chart(
        width,
        _HEIGHT,
        _LEFT,
        width - _RIGHT,
        [(y(tick), f"{tick:.2f}") for tick in (low, (low + high) / 2, high)],
        [(x(tick), f"{tick:.0f}", anchor) for tick, anchor in ((0, "start"), (last / 2, "middle"), (last, "end"))],
        y(published) if published is not None and low <= published <= high else None,
        [(each, "L".join(f"{x(epoch)} {y(score)}" for epoch, score in each.points)) for each in curves],
    )


def panels(table: ResultTable, column: Column) -> list[tuple[str, Chart]]:
    """The learning curves of a column, means over the runs: a chart for each family and protocol, with equal limits."""
    found = list[tuple[str, list[Curve]]]()
    for protocol in table.protocols if column.curves and column.metric else ():
        for family, rows in table.families([column]):
            curves = list[Curve]()
            for number, row in enumerate(row for row in rows if not row.best_of):
                cell = table.cell(protocol, row.name, column)
                each = [curve(run.record, column.metric) for run in cell.runs] if cell is not None else []
                if points := _thin(mean_curve([points for points in each if points])):
                    curves.append(Curve(row.title, f"k{number % _KINDS}", points))
            found += [(f"{family}, {protocol}", curves)] * bool(curves)
    limits = span([each for _, curves in found for each in curves])
    return [(title, draw(curves, limits)) for title, curves in found]


@dataclass(frozen=True)
class Bar:
    """A gain as a bar: where it starts and its length in per cent, its label, and whether it is as expected."""

    source: Source
    start: float
    length: float
    label: str
    checks: list[tuple[str, Check]]


def gain_bars(table: ResultTable) -> list[tuple[str, list[tuple[Column, list[Bar]]]]]:
    """Best ID-GNN minus best GNN for every column of a table that compares families, by group."""
    found = gains(table)
    values = [gain.gain for each in found for gain in each.values() if gain.gain is not None]
    low, high = min([0.0, *values]), max([0.01, *values])

    def bar(gain: Gain, published: Gain | None) -> Bar:
        if gain.gain is None:
            return Bar(gain.source, 0.0, 0.0, f"{gain.source}: not run", [])
        start, length = (100 * part / (high - low) for part in (min(gain.gain, 0.0) - low, abs(gain.gain)))
        checks = []
        if published is not None and gain is not published:
            checks = [("gain", gain_check(gain, published)), ("level", level_check(gain, published))]
        judged = [(name, check) for name, check in checks if check is not None and check.found is not None]
        return Bar(gain.source, start, length, f"{100 * gain.gain:+.1f}", judged)

    bars = (
        (next(iter(each.values())).column, [bar(gain, each.get("published")) for gain in each.values()])
        for each in found
    )
    return [(group, list(each)) for group, each in groupby(bars, lambda pair: pair[0].group)]
