"""What the paper leads us to expect of our results, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from idgnn.choices import Protocol
from idgnn.experiments.paper_table import CONVS, FULL, GNNS
from idgnn.experiments.trained_tables import PGNN
from idgnn.report.blocks import Block, Check, Head, Line, Shown, Tally, Verdict, above, at_least, printed, within
from idgnn.report.cells import Cell
from idgnn.report.gain_and_level import gain, level
from idgnn.report.layout import PROTOCOLS, Heading
from idgnn.report.tables import SOURCES, ResultTable, Source

_SIGNS = (
    "✓ holds, ✗ does not hold, not run: there is no result yet. So far: some of the runs behind the verdict are still "
    "missing. Numbers are compared as printed here; differences are taken before rounding."
)
_VERDICTS: tuple[Verdict, ...] = ("holds", "does not hold", "not run")


def expectations(tables: Sequence[ResultTable]) -> list[Block]:
    """How many hold, and then each kind; empty if no table has any, or for runs of `--quick`."""
    if any(table.layout.quick for table in tables):
        return []
    made = (write(tables) for write in (gain, level, full_by_architecture, beside_pgnn, plain_gnns))
    found = [block for block in made if block is not None]
    return [_counts([tally for block in found for tally in block.tallies]), *found] if found else []


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
    heads = tuple(map(Head, ("✓ holds", "✗ does not hold", "not run", "of")))
    return Block("how-many-hold", "How many hold", _SIGNS, "expectation", heads, lines, tuple(ordered))


def _count(tally: Tally, verdict: Verdict) -> str:
    number, so_far = tally.number(verdict), tally.so_far(verdict)
    return f"{number}" + (f" ({so_far} so far)" if so_far else "")


# ID-GNN-Full solves clustering coefficients and shortest paths if messages are colored as in Eq. 3. By the prefix of
# a column's name: the architectures from which it is expected, and the least score.
_LEAST: dict[str, tuple[tuple[str, ...], float]] = {"node": (("gcn", "gin"), 0.95), "path": (CONVS, 0.99)}
_FULL_NAMES = {"node": "Clustering of nodes: ID-GCN and ID-GIN", "path": "Shortest paths: all four ID-GNN-Full"}
_FULL_CAPTION = (
    "Accuracy of ID-GNN-Full under the protocol of the text, where every architecture colors its messages as Eq. 3 "
    "has it. Expected on clustering coefficients of nodes: GCN and GIN at least 0.95; on shortest path distances: all "
    "four at least 0.99. Without a sign nothing is expected."
)


def full_by_architecture(tables: Sequence[ResultTable]) -> Block | None:
    """A row for each column on clustering coefficients of nodes and on shortest paths; None without Table 2."""
    table = next((table for table in tables if table.layout.name == "table2"), None)
    if table is None:
        return None
    lines, checks = list[Line](), {kind: list[Check]() for kind in _LEAST}
    for heading in table.layout.headings:
        kind = heading.name.partition("-")[0]
        if kind not in _LEAST:
            continue
        cells = [_full_cell(table, heading, model.name, model.conv, kind) for model in FULL]
        checks[kind] += [cell.check for cell in cells if cell.check is not None]
        lines.append(Line(heading.title, tuple(cells), heading.group))
    tallies = (Tally(f"{_FULL_NAMES[kind]} at least {_LEAST[kind][1]}", "text", tuple(checks[kind])) for kind in checks)
    heads = tuple(Head(conv.upper()) for conv in CONVS)
    return Block("full", "ID-GNN-Full by architecture", _FULL_CAPTION, "column", heads, tuple(lines), tuple(tallies))


def _full_cell(table: ResultTable, heading: Heading, row: str, conv: str, kind: str) -> Shown:
    cell = table.cell("text", row, heading)
    assert cell is not None  # every column of Table 2 has the models of the paper
    convs, least = _LEAST[kind]
    check = at_least(cell.mean, least, cell.complete) if conv in convs else None
    return Shown(cell.number, check, f"{cell.n} of {cell.total} runs")


_PGNN_CAPTION = "ROC AUC of link prediction. Expected: the best of the four ID-GNN-Full is above P-GNN, as in Table 5."


def beside_pgnn(tables: Sequence[ResultTable]) -> Block | None:
    """Published, text and released for each column of Table 5; None without it."""
    table = next((table for table in tables if table.layout.name == "table5"), None)
    if table is None:
        return None
    headings = table.layout.headings
    lines = tuple(_pgnn_line(table, source, heading) for heading in headings for source in SOURCES)
    tallies = tuple(
        Tally(
            "Table 5: ID-GNN-Full above P-GNN", protocol, tuple(_pgnn_check(table, protocol, each) for each in headings)
        )
        for protocol in PROTOCOLS
    )
    heads = tuple(map(Head, ("best ID-GNN-Full", "P-GNN", "difference")))
    return Block("beside-pgnn", "ID-GNN-Full and P-GNN", _PGNN_CAPTION, "", heads, lines, tallies)


def _pgnn_check(table: ResultTable, source: Source, heading: Heading) -> Check:
    full, pgnn = _pgnn_cells(table, source, heading)
    cells = [pgnn, *table.column(source, heading, ("ID-GNN-Full",))]
    complete = all(cell is not None and cell.complete for cell in cells)
    return above(full.mean if full else None, pgnn.mean if pgnn else None, complete)


def _pgnn_line(table: ResultTable, source: Source, heading: Heading) -> Line:
    check = _pgnn_check(table, source, heading)
    text = "not run" if check.found is None else f"{printed(check.found):+.3f}"
    numbers = [Shown(cell.number if cell else "") for cell in _pgnn_cells(table, source, heading)]
    difference = Shown(text, None if source == "published" else check)
    return Line(source, (*numbers, difference), f"{heading.group}, {heading.title}")


def _pgnn_cells(table: ResultTable, source: Source, heading: Heading) -> tuple[Cell | None, Cell | None]:
    full, pgnn = (table.cell(source, name, heading) for name in ("best-full", PGNN))
    return full, pgnn


_PUBLISHED_RUNS = 3
_NOISE_RULE = (
    "Within noise: Student's t-test at 95 % (both with the same spread) finds no difference between the two means of "
    "three runs. So even of equal networks, one in 20 is outside. The published deviations are those of a population "
    "(n), which the test takes into account."
)
# Two-sided 95 % quantiles of Student's distribution by degrees of freedom.
_QUANTILES = {2: 4.303, 3: 3.182, 4: 2.776}

_PLAIN_TITLE = "Plain GNNs with the released settings"
_PLAIN_CAPTION = (
    "Our mean minus the published one, and in parentheses the largest difference that is within noise. Expected: all "
    f"are, because plain GNNs are the same networks in the paper and here. {_NOISE_RULE}"
)


def plain_gnns(tables: Sequence[ResultTable]) -> Block | None:
    """A row for each column of Tables 2 and 3; None without these tables."""
    chosen = [table for table in tables if table.layout.name in ("table2", "table3")]
    if not chosen:
        return None
    lines = tuple(
        Line(heading.title, tuple(_plain_cell(table, heading, model.name) for model in GNNS), heading.group)
        for table in chosen
        for heading in table.layout.headings
    )
    checks = tuple(cell.check for line in lines for cell in line.cells if cell.check is not None)
    tally = Tally("Plain GNNs within noise of the published numbers", "released", checks)
    heads = tuple(Head(model.conv.upper()) for model in GNNS)
    return Block("plain-gnns", _PLAIN_TITLE, _PLAIN_CAPTION, "column", heads, lines, (tally,))


def _plain_cell(table: ResultTable, heading: Heading, row: str) -> Shown:
    cell = table.cell("released", row, heading)
    assert cell is not None  # every column of Tables 2 and 3 has the models of the paper
    theirs = cell.published
    if theirs is None:
        return Shown(cell.number)
    if cell.mean is None:
        return Shown(cell.number, within(None, 0.0, False), f"published {theirs.mean:.3f}")
    difference, tolerance = cell.mean - theirs.mean, noise_tolerance(cell.std, cell.n, theirs.std)
    text = f"{printed(difference):+.3f} (±{tolerance:.3f})"
    hint = f"{cell.number}, published {theirs.mean:.3f} ± {theirs.std or 0.0:.3f}"
    return Shown(text, within(difference, tolerance, cell.complete), hint)


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
