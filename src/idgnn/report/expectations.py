"""Which expectations of the tables hold, as blocks of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import TypeVar

from idgnn.choices import Protocol
from idgnn.experiments.expectations import BetterThan, Bounds, WithinNoise
from idgnn.experiments.grid import PROTOCOLS
from idgnn.experiments.table import Column
from idgnn.report.blocks import Block, Check, Line, Shown, Tally, Verdict, heads, printed, reaches, within
from idgnn.report.cells import Cell
from idgnn.report.gains import comparison_of, gain_and_level
from idgnn.report.results import ResultTable, Source

Kind = TypeVar("Kind", Bounds, BetterThan, WithinNoise)
ByRow = TypeVar("ByRow", Bounds, WithinNoise)
_SIGNS = (
    "✓ holds, ✗ does not hold, not run: there is no result yet. So far: some of the runs behind the verdict are still "
    "missing. Numbers are compared as printed here; differences are taken before rounding."
)
_VERDICTS: tuple[Verdict, ...] = ("holds", "does not hold", "not run")


def expectations(tables: Sequence[ResultTable]) -> list[Block]:
    """How many hold, and then each kind; empty if no table has any, or for runs of `--quick`."""
    if any(table.quick for table in tables):
        return []
    compared = [table for table in tables if comparison_of(table) is not None]
    found = gain_and_level(compared) if compared else []
    found += [_by_row(every, _reached) for every in _of_kind(tables, Bounds)]
    found += map(_better_than, _of_kind(tables, BetterThan))
    found += [_by_row(every, _as_published) for every in _of_kind(tables, WithinNoise)]
    return [_counts(found), *found] if found else []


def _of_kind(tables: Sequence[ResultTable], kind: type[Kind]) -> list[list[tuple[ResultTable, Kind]]]:
    """The expectations of a kind, of protocols that are shown; tables with one of the same name share a block."""
    found = dict[str, list[tuple[ResultTable, Kind]]]()
    for table in tables:
        for each in table.table.expectations:
            if isinstance(each, kind) and getattr(each, "protocol", "text") in ("text", *table.protocols):
                found.setdefault(each.name, []).append((table, each))
    return list(found.values())


def total(blocks: Sequence[Block], protocol: Protocol) -> Tally:
    """All expectations of some blocks under a protocol."""
    tallies = (tally for block in blocks for tally in block.tallies if tally.protocol == protocol)
    return Tally("all", protocol, tuple(check for tally in tallies for check in tally.checks))


def headline(blocks: Sequence[Block]) -> list[str]:
    """A sentence for each protocol."""
    sentences = []
    for tally in (total(blocks, protocol) for protocol in PROTOCOLS):
        held, not_held, not_run = (tally.number(verdict) for verdict in _VERDICTS)
        so_far = sum(check.so_far for check in tally.checks)
        if tally.checks:
            sentences.append(
                f"Of {len(tally.checks)} expectations under the protocol {tally.protocol}, {held} held and {not_held} "
                f"did not{f' ({so_far} of these so far)' if so_far else ''}"
                f"{f', {not_run} not run yet' if not_run else ''}."
            )
    return sentences


def _counts(blocks: Sequence[Block]) -> Block:
    """A row for each kind of expectation."""
    lines = tuple(
        Line(
            tally.name,
            (*(Shown(_count(tally, verdict)) for verdict in _VERDICTS), Shown(str(len(tally.checks)))),
            f"Protocol {protocol}",
        )
        for protocol in PROTOCOLS
        for block in blocks
        for tally in block.tallies
        if tally.protocol == protocol
    )
    titles = heads("✓ holds", "✗ does not hold", "not run", "of")
    return Block("how-many-hold", "How many hold", _SIGNS, "expectation", titles, lines)


def _count(tally: Tally, verdict: Verdict) -> str:
    number, so_far = tally.number(verdict), tally.so_far(verdict)
    return f"{number}" + (f" ({so_far} so far)" if so_far else "")


def _by_row(every: Sequence[tuple[ResultTable, ByRow]], show: Callable[[ByRow, Cell, Column, str], Shown]) -> Block:
    """A line for each column of which something is expected, and the rows of the table as columns."""
    lines, (table, first) = list[Line](), every[0]
    titles = {row.name: row.title for row in table.table.rows}
    for table, expected in every:
        for column in table.table.columns:
            cells = [(row, table.cell(expected.protocol, row, column)) for row in expected.rows]
            shown = tuple(show(expected, cell, column, row) if cell else Shown("") for row, cell in cells)
            lines += [Line(column.title, shown, column.group)] * any(each.check for each in shown)
    rows = heads(*(titles[row] for row in first.rows))
    return Block(first.name, first.title, first.caption, "column", rows, tuple(lines))


def _reached(expected: Bounds, cell: Cell, column: Column, row: str) -> Shown:
    bound = next((each for each in expected.bounds if column.name in each.columns and row in each.rows), None)
    runs = f"{cell.n} of {cell.total} runs"
    if bound is None:
        return Shown(cell.text, hint=runs)
    check = reaches(cell.mean, bound.score, cell.complete, column.lower_is_better, column.digits)
    return Shown(cell.text, check, runs, (bound.name, expected.protocol))


def _as_published(expected: WithinNoise, cell: Cell, column: Column, row: str) -> Shown:
    theirs = cell.published
    counts: tuple[str, Protocol] = (expected.tally, expected.protocol)
    if theirs is None:
        return Shown(cell.text)
    if cell.mean is None:
        return Shown(cell.text, within(None, 0.0, False), f"published {theirs.mean:.3f}", counts)
    difference, tolerance = cell.mean - theirs.mean, noise_tolerance(cell.std, cell.n, theirs.std)
    text = f"{printed(difference):+.3f} (±{tolerance:.3f})"
    hint = f"{cell.text}, published {theirs.mean:.3f} ± {theirs.std or 0.0:.3f}"
    return Shown(text, within(difference, tolerance, cell.complete), hint, counts)


def _better_than(every: Sequence[tuple[ResultTable, BetterThan]]) -> Block:
    """Published and every protocol, for each column."""
    lines, (table, first) = list[Line](), every[0]
    titles = {row.name: row.title for row in table.table.rows}
    for table, expected in every:
        for column in table.table.columns:
            for source in table.all_sources:
                numbers = [table.cell(source, row, column) for row in (expected.row, expected.other)]
                check, digits = _difference(table, expected, source, column), column.digits
                text = "not run" if check.found is None else f"{printed(check.found, digits):+.{digits}f}"
                shown = Shown(text) if source == "published" else Shown(text, check, "", (expected.tally, source))
                cells = (*(Shown(cell.text if cell else "") for cell in numbers), shown)
                lines.append(Line(source, cells, f"{column.group}, {column.title}"))
    rows = heads(titles[first.row], titles[first.other], "difference")
    return Block(first.name, first.title, first.caption, "", rows, tuple(lines))


def _difference(table: ResultTable, expected: BetterThan, source: Source, column: Column) -> Check:
    """By how much the row is better than the other; complete with all runs of the families that it is the best of."""
    rows = [row for row in table.table.rows if row.name in (expected.row, expected.other)]
    ours, theirs = (table.cell(source, row, column) for row in (expected.row, expected.other))
    cells = (ours, theirs, *table.column(source, column, [row.best_of for row in rows if row.best_of]))
    complete = all(cell is not None and cell.complete for cell in cells)
    if ours is None or theirs is None or ours.mean is None or theirs.mean is None:
        return Check(None, False, complete)
    better = column.gain(printed(ours.mean, column.digits), printed(theirs.mean, column.digits)) > 0
    return Check(column.gain(ours.mean, theirs.mean), better, complete)


_PUBLISHED_RUNS = 3
# Two-sided 95 % quantiles of Student's distribution by degrees of freedom.
_QUANTILES = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201}


def noise_tolerance(std: float | None, runs: int, published_std: float | None) -> float:
    """The largest difference of two means that chance explains: ours of some runs, the published one of three.

    It is larger with fewer of our runs: with one of them only the published spread is known. That published
    deviations divide by n can be seen in BZR and PROTEINS, whose scores are multiples of 1/81 and 1/220: for all 24
    numbers there are three such scores with the printed mean and deviation if it does, and for none if it divides by
    n - 1.

    >>> round(noise_tolerance(0.01, 3, 0.01), 4)
    0.0253
    >>> round(noise_tolerance(None, 1, 0.01), 4)
    0.0609
    >>> round(noise_tolerance(0.01, 9, 0.01), 4)
    0.0156
    """
    squares = (runs - 1) * (std or 0.0) ** 2 + _PUBLISHED_RUNS * (published_std or 0.0) ** 2
    freedom = runs + _PUBLISHED_RUNS - 2
    quantile = _QUANTILES[min(freedom, max(_QUANTILES))]  # with more, the last is a little too large
    return quantile * sqrt(squares / freedom * (1 / runs + 1 / _PUBLISHED_RUNS))
