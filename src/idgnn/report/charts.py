"""Learning curves as SVG, and gains as bars, without a plotting library, so that the page is self-contained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import ceil, floor
from statistics import fmean

from idgnn.report.blocks import VERDICT_SIGN
from idgnn.report.cells import Cell, curve
from idgnn.report.gain_and_level import gain_check, level_check
from idgnn.report.tables import Gain

Points = Sequence[tuple[int, float]]
_HEIGHT = 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 8, 8, 20
_POINTS = 50


@dataclass(frozen=True)
class Curve:
    """A score over the epochs; `kind` is the class that gives it its color and dashes."""

    label: str
    kind: str
    points: Points


def seed_curves(cell: Cell, metric: str | None) -> list[Curve]:
    """The score on the validation part of every run of a cell."""
    found = [(run.spec.seed, _thin(curve(run.record, metric))) for run in cell.runs]
    several = len({seed for seed, _ in found}) > 1
    return [
        Curve(f"seed {seed}" if several else f"run {number}", f"k{number % 4}", points)
        for number, (seed, points) in enumerate(found)
        if points
    ]


def mean_curve(cell: Cell, metric: str | None, label: str, kind: str) -> Curve | None:
    """The mean over the runs, at the epochs that all of them have."""
    curves = [each for each in (curve(run.record, metric) for run in cell.runs) if each]
    if not curves:
        return None
    epochs = [epoch for epoch in curves[0] if all(epoch in each for each in curves)]
    return Curve(label, kind, _thin({epoch: fmean(each[epoch] for each in curves) for epoch in epochs}))


def _thin(scores: dict[int, float]) -> Points:
    """As many points as can be distinguished, the last among them."""
    points = list(scores.items())
    return points[:: -max(len(points) // _POINTS, 1)][::-1]


def span(curves: Sequence[Curve]) -> tuple[float, float]:
    """The limits of an axis: tenths, between which all curves lie."""
    scores = [score for each in curves for _, score in each.points] or [0.0, 1.0]
    low, high = floor(10 * min(scores) + 1e-9) / 10, ceil(10 * max(scores) - 1e-9) / 10
    return (low, high) if high > low else (low, low + 0.1)


def chart(
    curves: Sequence[Curve], limits: tuple[float, float], title: str, published: float | None = None, width: int = 300
) -> str:
    """Curves in one frame; a dashed line marks the published score."""
    low, high = limits
    last = max((epoch for each in curves for epoch, _ in each.points), default=1)

    def x(epoch: float) -> str:
        return f"{_LEFT + epoch / last * (width - _LEFT - _RIGHT):.1f}"

    def y(score: float) -> str:
        return f"{_HEIGHT - _BOTTOM - (score - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM):.1f}"

    parts = [f'<svg viewBox="0 0 {width} {_HEIGHT}" role="img" aria-label="{escape(title)}">']
    for tick in (low, (low + high) / 2, high):
        parts.append(f'<path class="grid" d="M{_LEFT} {y(tick)}H{width - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{y(tick)}" dy=".32em" text-anchor="end">{tick:.2f}</text>')
    for tick, anchor in ((0.0, "start"), (last / 2, "middle"), (last, "end")):
        parts.append(f'<text x="{x(tick)}" y="{_HEIGHT - 5}" text-anchor="{anchor}">{tick:.0f}</text>')
    if published is not None and low <= published <= high:
        parts.append(f'<path class="mark" d="M{_LEFT} {y(published)}H{width - _RIGHT}"/>')
    for each in curves:
        path = "L".join(f"{x(epoch)} {y(score)}" for epoch, score in each.points)
        parts.append(f'<path class="curve {each.kind}" d="M{path}"><title>{escape(each.label)}</title></path>')
    return "".join([*parts, "</svg>"])


def gain_bars(found: Sequence[tuple[Gain, Gain, Gain]]) -> str:
    """Best ID-GNN minus best GNN for every column, and whether it is as expected."""
    values = [gain.gain for three in found for gain in three if gain.gain is not None]
    low, high = min([0.0, *values]), max([0.01, *values])
    parts = []
    for group, columns in groupby(found, lambda three: three[0].heading.group):
        parts.append(f'<div class="group"><h4>{escape(group)}</h4>')
        for three in columns:
            bars = "".join(_bar(gain, three[0], low, high) for gain in three)
            parts.append(f'<span class="name">{escape(three[0].heading.title)}</span><span>{bars}</span>')
        parts.append("</div>")
    return f'<div class="gains">{"".join(parts)}</div>'


def _bar(gain: Gain, published: Gain, low: float, high: float) -> str:
    if gain.gain is None:
        return f'<span class="bar {gain.source}"><span class="rest">{gain.source}: not run</span></span>'
    start, length = (100 * part / (high - low) for part in (min(gain.gain, 0.0) - low, abs(gain.gain)))
    label = f"{100 * gain.gain:+.1f}"
    if gain is not published:
        for name, check in (("gain", gain_check(gain, published)), ("level", level_check(gain, published))):
            if check is not None and check.found is not None:
                label += f' <i class="{check.css_class}" title="{name}: {check.sign}">{VERDICT_SIGN[check.verdict]}</i>'
    return (
        f'<span class="bar {gain.source}" title="{gain.source}"><span class="fill" '
        f'style="margin-left:{start:.2f}%;width:{length:.2f}%"></span><span class="rest">{label}</span></span>'
    )
