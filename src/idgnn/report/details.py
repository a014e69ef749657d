"""What the page shows about a number beside it: its runs, settings, command and learning curves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idgnn.experiments.spec import job_as_dict
from idgnn.experiments.table import Column
from idgnn.report.cells import Cell, CellRun
from idgnn.report.charts import Chart, draw, seed_curves, span


def command(cell: Cell, quick: bool) -> str:
    """The command that runs a cell."""
    first = cell.runs[0].spec
    seeds = " ".join(str(seed) for seed in dict.fromkeys(run.spec.seed for run in cell.runs))
    where = f"{first.table} --columns {first.column} --models {first.row}"
    return f"idgnn reproduce {where} --seeds {seeds} --protocol {first.protocol}" + " --quick" * quick


def seed_chart(cell: Cell, column: Column) -> Chart | None:
    """The learning curves of its runs, if another column does not have them already."""
    curves = seed_curves(cell, column.metric) if column.curves else []
    return draw(curves, span(curves), cell.published.mean if cell.published else None, width=520) if curves else None


def metrics_of(cell: Cell) -> list[str]:
    """The metrics that its runs have at the last epoch; of a measurement, its plain numbers."""
    return list(dict.fromkeys(name for run in cell.runs for name in _metrics(run)))


def _metrics(run: CellRun) -> dict[str, Any]:
    result = run.record.result if run.record is not None and run.record.result is not None else {}
    found = result.get("valid", {name: each for name, each in result.items() if isinstance(each, int | float)})
    return dict(found)


def run_values(run: CellRun, metrics: Sequence[str]) -> list[str]:
    """These metrics of a run, its best epoch, parameters and seconds; empty without a result."""
    if run.record is None or run.record.result is None:
        return []
    best, size = run.record.result.get("best"), run.record.result.get("num_parameters")
    values = (_metrics(run).get(name) for name in metrics)
    return [
        *(f"{value:.4f}" if isinstance(value, float) else str(value) for value in values),
        str(best.get("epoch", "")) if isinstance(best, dict) else "",
        f"{size:,}" if isinstance(size, int) else "",
        f"{run.record.seconds:,.0f}",
    ]


def reason(run: CellRun) -> str:
    """Why a run has no values."""
    return "not run" if run.record is None else (run.record.error or "no result").strip().partition("\n")[0]


def settings_of(cell: Cell) -> list[tuple[str, str]]:
    """The settings of its runs that differ from the defaults."""
    return [(name, value) for name, value in _flat(job_as_dict(cell.runs[0].spec.job)) if name != "seed"]


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value if isinstance(value, str) else json.dumps(value)
