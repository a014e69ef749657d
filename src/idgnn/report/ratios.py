"""Rows of a table as ratios, which depend less on the machine than milliseconds do."""

from __future__ import annotations

from statistics import median

from idgnn.experiments.table import Column, Ratio
from idgnn.report.blocks import Block, Head, Line, Shown
from idgnn.report.results import ResultTable


def ratios(table: ResultTable) -> Block | None:
    """Published and ours; None for tables without ratios."""
    if table.table.ratios is None:
        return None
    columns = table.table.columns
    heads = [Head(title, column.title) for column in columns for title in (*["published"] * column.compared, "ours")]
    lines = [
        Line(ratio.title, tuple(cell for column in columns for cell in _cells(table, column, ratio)))
        for ratio in table.table.ratios.lines
    ]
    records = (run.record for cell in table.ours() for run in cell.runs)
    machines = sorted({record.machine.partition(",")[0] for record in records if record is not None and record.result})
    caption = table.table.ratios.caption + (f" Ours: {' and '.join(machines)}." if machines else "")
    return Block(f"{table.table.name}-ratios", "Ratios", caption, "", tuple(heads), tuple(lines))


def _cells(table: ResultTable, column: Column, ratio: Ratio) -> list[Shown]:
    """The published one, where the column has them, and the median of ours over the runs that both rows share."""
    assert table.table.ratios is not None
    read, cell = table.table.ratios.read, table.cell(table.table.protocols[0], ratio.first, column)
    ours = []
    for run in cell.runs if cell else ():
        if run.record is not None and run.record.result is not None:
            one, two = (read(run.record.result, column, row) for row in (ratio.first, ratio.second))
            ours += [one / two] if one is not None and two is not None else []
    shown = Shown(f"{median(ours):.1f}" if ours else "not run", hint=", ".join(f"{each:.2f}" for each in ours))
    return [_published(table, column, ratio), shown] if column.compared else [shown]


def _published(table: ResultTable, column: Column, ratio: Ratio) -> Shown:
    cells = [table.cell("published", row, column) for row in ratio.published or ()]
    means = [cell.mean for cell in cells if cell is not None and cell.mean is not None]
    return Shown(f"{means[0] / means[1]:.1f}" if len(means) == 2 else "")
