"""What the page shows about a number: its runs, settings, command and learning curves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from idgnn.experiments.spec import job_as_dict
from idgnn.experiments.table import Column, Row
from idgnn.report.cells import Cell, CellRun, published_cell
from idgnn.report.charts import Chart, draw, seed_curves, span
from idgnn.report.results import ResultTable


@dataclass(frozen=True)
class Details:
    """The content of a popover."""

    where: str
    model: str
    family: str
    facts: str
    chart: Chart | None
    chart_caption: str
    metrics: list[str]
    runs: list[tuple[str, list[str], str, str]]  # seed, values, the reason if there are none, machine
    command: str
    settings: list[tuple[str, str]]


def command(cell: Cell) -> str:
    """The command that runs a cell."""
    first = cell.runs[0].spec
    seeds = " ".join(str(seed) for seed in dict.fromkeys(run.spec.seed for run in cell.runs))
    where = f"{first.table} --columns {first.column} --models {first.row}"
    return f"idgnn reproduce {where} --seeds {seeds} --protocol {first.protocol}"


def details(table: ResultTable, row: Row, column: Column, cell: Cell) -> Details:
    """About one number of a table."""
    spec = cell.runs[0].spec
    facts = [f"{cell.share} runs"] if cell.share else []
    facts += [f"published {published_cell(cell.published, column).number}"] if cell.published else []
    curves = seed_curves(cell, column.metric) if column.curves else []
    theirs = cell.published.mean if cell.published else None
    metrics = list(dict.fromkeys(name for run in cell.runs for name in _metrics(run)))
    return Details(
        where=" · ".join(filter(None, (table.table.short_title, column.group, column.title))),
        model=row.title if spec.row == row.name else f"{row.title}: {spec.row}",
        family=", ".join(filter(None, (row.family, spec.protocol))),
        facts=", ".join(facts),
        chart=draw(curves, span(curves), theirs, width=520) if curves else None,
        chart_caption=f"{column.metric} on the validation part by epoch",
        metrics=metrics,
        runs=[_run(run, metrics) for run in cell.runs],
        command=command(cell) + " --quick" * table.quick,
        settings=[(name, value) for name, value in _flat(job_as_dict(spec.job)) if name != "seed"],
    )


def _run(run: CellRun, metrics: list[str]) -> tuple[str, list[str], str, str]:
    record, seed = run.record, str(run.spec.seed)
    if record is None or record.result is None:
        reason = "not run" if record is None else (record.error or "no result").strip().partition("\n")[0]
        return seed, [], reason, ""
    values = [_metrics(run).get(name) for name in metrics]
    best, size = record.result.get("best"), record.result.get("num_parameters")
    shown = [
        *(f"{value:.4f}" if isinstance(value, float) else str(value) for value in values),
        str(best.get("epoch", "")) if isinstance(best, dict) else "",
        f"{size:,}" if isinstance(size, int) else "",
        f"{record.seconds:,.0f}",
    ]
    return seed, shown, "", record.machine


def _metrics(run: CellRun) -> dict[str, Any]:
    """The metrics at the last epoch; of a measurement, its plain numbers."""
    result = run.record.result if run.record is not None and run.record.result is not None else {}
    found = result.get("valid", {name: each for name, each in result.items() if isinstance(each, int | float)})
    return dict(found)


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value if isinstance(value, str) else json.dumps(value)
