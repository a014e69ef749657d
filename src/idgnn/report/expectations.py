"""Which expectations of the tables hold, as blocks of text."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TypeVar

from idgnn.choices import Protocol
from idgnn.experiments.expectations import BetterThan, Bounds, WithinNoise
from idgnn.experiments.grid import PROTOCOLS
from idgnn.experiments.table import Column
from idgnn.report.blocks import Block, Check, Line, Shown, Tally, Verdict, printed, reaches, within
from idgnn.report.cells import Cell
from idgnn.report.gains import comparison_of, gain_and_level
from idgnn.report.results import SOURCES, ResultTable, Source

Kind = TypeVar("Kind", Bounds, BetterThan, WithinNoise)
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
    found += map(_bounds, _of_kind(tables, Bounds))
    found += map(_better_than, _of_kind(tables, BetterThan))
    found += map(_within_noise, _of_kind(tables, WithinNoise))
    return [_counts([tally for block in found for tally in block.tallies]), *found] if found else []


def _of_kind(tables: Sequence[ResultTable], kind: type[Kind]) -> list[list[tuple[ResultTable, Kind]]]:
    """The expectations of a kind; tables that have one of the same name share a block."""
    found = dict[str, list[tuple[ResultTable, Kind]]]()
    for table in tables:
        for each in table.table.expectations:
            if isinstance(each, kind):
                found.setdefault(each.name, []).append((table, each))
    return list(found.values())


def total(blocks: Sequence[Block], protocol: Protocol) -> Tally:
    """All expectations of :func:`expectations` under a protocol."""
    tallies = blocks[0].tallies if blocks else ()  # the first block has those of all others
    return Tally(
        "all", protocol, tuple(check for each in tallies if each.protocol == protocol for check in each.checks)
    )


def headline(blocks: Sequence[Block]) -> list[str]:
    """A sentence for each protocol."""
    sentences = []
    for tally in (total(blocks, protocol) for protocol in PROTOCOLS):
        held, not_held, not_run = (tally.number(verdict) for verdict in _VERDICTS)
        so_far = sum(check.so_far for check in tally.checks)
        if tally.checks:
            sentences.append(
                f"Of {len(tally.checks)} expectations under the protocol {tally.protocol}, {held} held and {not_held} "
                f"did not{f' ({so_far} of these so far)' if so_far else ''}; {not_run} have no result yet."
            )
    return sentences


def _counts(tallies: Sequence[Tally]) -> Block:
    """A row for each kind of expectation."""
    ordered = [tally for protocol in PROTOCOLS for tally in tallies if tally.protocol == protocol]
    lines = tuple(
        Line(
            tally.name,
            (*(Shown(_count(tally, verdict)) for verdict in _VERDICTS), Shown(str(len(tally.checks)))),
            f"Protocol {tally.protocol}",
        )
        for tally in ordered
    )
    heads = ("✓ holds", "✗ does not hold", "not run", "of")
    return Block("how-many-hold", "How many hold", _SIGNS, "expectation").with_lines(heads, lines, ordered)


def _count(tally: Tally, verdict: Verdict) -> str:
    number, so_far = tally.number(verdict), tally.so_far(verdict)
    return f"{number}" + (f" ({so_far} so far)" if so_far else "")


def _bounds(every: Sequence[tuple[ResultTable, Bounds]]) -> Block:
    """A row for each column with a bound, and the rows of the table as columns."""
    lines, tallies, first = list[Line](), list[Tally](), every[0][1]
    for table, expected in every:
        checks = {bound: list[Check]() for bound in expected.bounds}
        for column in table.table.columns:
            bounds = [bound for bound in expected.bounds if column.name in bound.columns]
            if not bounds:
                continue
            shown = []
            for row in expected.rows:
                bound = next((each for each in bounds if row in each.rows), None)
                cell = table.cell(expected.protocol, row, column)
                check = None
                if cell is not None and bound is not None:
                    check = reaches(cell.mean, bound.score, cell.complete, column.lower_is_better, column.digits)
                    checks[bound].append(check)
                runs = f"{cell.n} of {cell.total} runs" if cell else ""
                shown.append(Shown(cell.number if cell else "", check, runs))
            lines.append(Line(column.title, tuple(shown), column.group))
        tallies += [Tally(bound.name, expected.protocol, tuple(checks[bound])) for bound in expected.bounds]
    return Block(first.name, first.title, first.caption, "column").with_lines(_titles(*every[0]), lines, tallies)


def _titles(table: ResultTable, expected: Bounds | WithinNoise) -> list[str]:
    """Of the rows that an expectation is about."""
    titles = {row.name: row.title for row in table.table.rows}
    return [titles[row] for row in expected.rows]


def _better_than(every: Sequence[tuple[ResultTable, BetterThan]]) -> Block:
    """Published and every protocol, for each column."""
    lines, checks, first = list[Line](), dict[Protocol, list[Check]](), every[0][1]
    for table, expected in every:
        for column in table.table.columns:
            group = f"{column.group}, {column.title}"
            for source in SOURCES:
                if source != "published" and source not in table.protocols:
                    continue
                cells = [table.cell(source, row, column) for row in (expected.row, expected.other)]
                check = _difference(table, expected, source, column)
                text = "not run" if check.found is None else f"{printed(check.found, column.digits):+.{column.digits}f}"
                numbers = [Shown(cell.number if cell else "") for cell in cells]
                if source == "published":
                    lines.append(Line(source, (*numbers, Shown(text)), group))
                else:
                    lines.append(Line(source, (*numbers, Shown(text, check)), group))
                    checks.setdefault(source, []).append(check)
    tallies = [Tally(first.tally, protocol, tuple(each)) for protocol, each in checks.items()]
    titles = {row.name: row.title for row in every[0][0].table.rows}
    heads = (titles[first.row], titles[first.other], "difference")
    return Block(first.name, first.title, first.caption, "").with_lines(heads, lines, tallies)


def _difference(table: ResultTable, expected: BetterThan, source: Source, column: Column) -> Check:
    """By how much the row is better than the other; complete with all runs of the families that it is the best of."""
    ours, theirs = (table.cell(source, row, column) for row in (expected.row, expected.other))
    cells = [ours, theirs]
    for row in table.table.rows:
        if row.name in (expected.row, expected.other) and row.best_of:
            cells += table.column(source, column, (row.best_of,))
    complete = all(cell is not None and cell.complete for cell in cells)
    if ours is None or theirs is None or ours.mean is None or theirs.mean is None:
        return Check(None, False, complete)
    better = column.gain(printed(ours.mean, column.digits), printed(theirs.mean, column.digits)) > 0
    return Check(column.gain(ours.mean, theirs.mean), better, complete)


def _within_noise(every: Sequence[tuple[ResultTable, WithinNoise]]) -> Block:
    """A row for each column, and the rows of the table as columns."""
    first = every[0][1]
    lines = []
    for table, expected in every:
        for column in table.table.columns:
            cells = (_noise_cell(table.cell(expected.protocol, row, column)) for row in expected.rows)
            lines.append(Line(column.title, tuple(cells), column.group))
    checks = tuple(cell.check for line in lines for cell in line.cells if cell.check is not None)
    block = Block(first.name, first.title, f"{first.caption} {_NOISE_RULE}", "column")
    return block.with_lines(_titles(*every[0]), lines, [Tally(first.tally, first.protocol, checks)])


def _noise_cell(cell: Cell | None) -> Shown:
    if cell is None or cell.published is None:
        return Shown(cell.number if cell else "")
    theirs = cell.published
    if cell.mean is None:
        return Shown(cell.number, within(None, 0.0, False), f"published {theirs.mean:.3f}")
    difference, tolerance = cell.mean - theirs.mean, noise_tolerance(cell.std, cell.n, theirs.std)
    text = f"{printed(difference):+.3f} (±{tolerance:.3f})"
    hint = f"{cell.number}, published {theirs.mean:.3f} ± {theirs.std or 0.0:.3f}"
    return Shown(text, within(difference, tolerance, cell.complete), hint)


_PUBLISHED_RUNS = 3
_NOISE_RULE = (
    "Within noise: Student's t-test at 95 % (both with the same spread) finds no difference between the two means of "
    "three runs. So even of equal networks, one in 20 is outside. The published deviations are those of a population "
    "(n), which the test takes into account."
)
# Two-sided 95 % quantiles of Student's distribution by degrees of freedom.
_QUANTILES = {2: 4.303, 3: 3.182, 4: 2.776}


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
    """
    squares = (runs - 1) * (std or 0.0) ** 2 + _PUBLISHED_RUNS * (published_std or 0.0) ** 2
    freedom = runs + _PUBLISHED_RUNS - 2
    quantile = _QUANTILES[min(freedom, max(_QUANTILES))]
    return quantile * sqrt(squares / freedom * (1 / runs + 1 / _PUBLISHED_RUNS))
