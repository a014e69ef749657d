"""Two expectations: the gain of the best ID-GNN over the best GNN, and its score, are those of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from idgnn.report.blocks import Block, Check, Head, Line, Shown, Tally, at_least, printed
from idgnn.report.cells import Cell
from idgnn.report.layout import PROTOCOLS
from idgnn.report.tables import Gain, ResultTable, gains

_GAIN_CAPTION = (
    "In percentage points: the best of the eight ID-GNNs of the paper minus the best of its four GNNs. Needed is the "
    "published gain minus one standard deviation: the published ones of the best ID-GNN and of the best GNN, added in "
    "quadrature."
)
_LEVEL_CAPTION = (
    "The score of the best of the eight ID-GNNs of the paper. Needed is the published score minus its published "
    "standard deviation."
)


def gain(tables: Sequence[ResultTable]) -> Block | None:
    """Whether it is as large as in the paper: a row for each column of Tables 2 and 3, or None."""

    def shown(gain: Gain, check: Check | None) -> Shown:
        models = " over ".join(filter(None, (_model(gain.identity), _model(gain.gnn))))
        return Shown(_points(gain.gain) if gain.gain is not None else "not run", check, models)

    title = "Gain of the best ID-GNN over the best GNN"
    return _block("gain", title, _GAIN_CAPTION, tables, shown, _points, _needed_gain, gain_check)


def level(tables: Sequence[ResultTable]) -> Block | None:
    """Whether the best ID-GNN is as good as in the paper: a row for each column of Tables 2 and 3, or None."""

    def shown(gain: Gain, check: Check | None) -> Shown:
        return Shown(gain.identity.number if gain.identity else "not run", check, _model(gain.identity))

    title = "Level of the best ID-GNN"
    return _block("level", title, _LEVEL_CAPTION, tables, shown, "{:.3f}".format, _needed_level, level_check)


def gain_check(ours: Gain, published: Gain) -> Check | None:
    """Whether the gain is as large as in the paper; None where the paper has none."""
    needed = _needed_gain(published)
    complete = ours.gnns_complete and ours.identities_complete
    return None if needed is None else at_least(ours.gain, needed, complete)


def level_check(ours: Gain, published: Gain) -> Check | None:
    """Whether the best ID-GNN is as good as in the paper; None where the paper has none."""
    needed = _needed_level(published)
    mean = ours.identity.mean if ours.identity else None
    return None if needed is None else at_least(mean, needed, ours.identities_complete)


def _needed_gain(published: Gain) -> float | None:
    return None if published.gain is None else printed(published.gain) - printed(published.deviation)


def _needed_level(published: Gain) -> float | None:
    best = published.identity
    return None if best is None or best.mean is None else printed(best.mean) - printed(best.std or 0.0)


def _block(
    name: str,
    title: str,
    caption: str,
    tables: Sequence[ResultTable],
    shown: Callable[[Gain, Check | None], Shown],
    number: Callable[[float], str],
    needed: Callable[[Gain], float | None],
    judge: Callable[[Gain, Gain], Check | None],
) -> Block | None:
    lines, checks = list[Line](), {protocol: list[Check]() for protocol in PROTOCOLS}
    for published, *ours in (three for table in tables for three in gains(table)):
        bound = needed(published)
        cells = [Shown(""), Shown("")] if bound is None else [shown(published, None), Shown(number(bound))]
        for protocol, each in zip(PROTOCOLS, ours, strict=True):
            check = judge(each, published)
            checks[protocol] += [check] if check is not None else []
            cells.append(shown(each, check))
        lines.append(Line(published.heading.title, tuple(cells), published.heading.group))
    tallies = tuple(Tally(title, protocol, tuple(checks[protocol])) for protocol in PROTOCOLS)
    heads = tuple(map(Head, ("published", "needed", *PROTOCOLS)))
    return Block(name, title, caption, "column", heads, tuple(lines), tallies) if lines else None


def _model(cell: Cell | None) -> str:
    return cell.runs[0].spec.row if cell is not None and cell.runs else ""


def _points(gain: float) -> str:
    return f"{100 * printed(gain):+.1f}"
