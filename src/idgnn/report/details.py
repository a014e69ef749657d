"""The popover of a number in the HTML page: its runs, settings, command and learning curves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from idgnn.experiments.spec import job_as_dict
from idgnn.report.cells import SIGN, Cell, CellRun
from idgnn.report.charts import chart, seed_curves, span
from idgnn.report.layout import Heading, Row
from idgnn.report.tables import ResultTable


def command(cell: Cell) -> str:
    """The command that runs a cell."""
    first = cell.runs[0].spec
    seeds = " ".join(str(seed) for seed in dict.fromkeys(run.spec.seed for run in cell.runs))
    where = f"{first.table} --columns {first.column} --models {first.row}"
    return f"idgnn reproduce {where} --seeds {seeds} --protocol {first.protocol}"


def details(table: ResultTable, row: Row, heading: Heading, cell: Cell, name: str) -> str:
    """A popover, which a browser opens without a script."""
    spec = cell.runs[0].spec
    where = " · ".join(each for each in (table.layout.title.partition(":")[0], heading.group, heading.title) if each)
    model = row.title if spec.row == row.name else f"{row.title}: {spec.row}"
    family = ", ".join(each for each in (row.family, spec.protocol) if each)
    beside = Cell("published", cell.published.mean, cell.published.std, digits=cell.digits) if cell.published else None
    facts = [f"{cell.share} runs"] if cell.share else []
    facts += [f"published {beside.number}"] if beside else []
    return (
        f'<div popover id="{name}" class="details"><p class="where">{escape(where)}</p>'
        f"<h3>{escape(model)} <em>{escape(family)}</em></h3>"
        f'<p class="big"><b class="{cell.status}">{escape(cell.number)} {SIGN[cell.status]}</b>'
        f" {escape(', '.join(facts))}</p>"
        f"{_curves(cell, heading)}{_runs(cell)}<h4>Command</h4><pre>{escape(command(cell))}</pre>"
        f"{_settings(cell)}</div>"
    )


def _curves(cell: Cell, heading: Heading) -> str:
    curves = seed_curves(cell, heading.metric)
    if not curves or heading.at == "best":  # the heading of the last epoch has the same curves
        return ""
    theirs = cell.published.mean if cell.published else None
    drawn = chart(curves, span(curves), "learning curves", theirs, width=520)
    keys = [f'<span class="key {each.kind}">{escape(each.label)}</span>' for each in curves]
    keys += ['<span class="key mark">published</span>'] if theirs is not None else []
    caption = f"{escape(heading.metric or '')} on the validation part by epoch"
    return f"<figure>{drawn}<figcaption>{''.join(keys)}<br>{caption}</figcaption></figure>"


def _runs(cell: Cell) -> str:
    metrics = list(dict.fromkeys(name for run in cell.runs for name in _metrics(run)))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("seed", *metrics, "best epoch", "parameters", "seconds"))
    rows = []
    for run in cell.runs:
        record = run.record
        if record is None or record.result is None:
            reason = "not run" if record is None else (record.error or "no result").strip().partition("\n")[0]
            rows.append(
                f'<tr><td>{run.spec.seed}</td><td class="said" colspan="{len(metrics) + 3}">{escape(reason)}</td></tr>'
            )
            continue
        values = [_metrics(run).get(name) for name in metrics]
        best, size = record.result.get("best"), record.result.get("num_parameters")
        cells = [
            str(run.spec.seed),
            *(f"{value:.4f}" if isinstance(value, float) else str(value) for value in values),
            str(best.get("epoch", "")) if isinstance(best, dict) else "",
            f"{size:,}" if isinstance(size, int) else "",
            f"{record.seconds:,.0f}",
        ]
        rows.append(
            f'<tr title="{escape(record.machine)}">{"".join(f"<td>{escape(each)}</td>" for each in cells)}</tr>'
        )
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table class="runs">{body}</table></div>'


def _metrics(run: CellRun) -> dict[str, Any]:
    """The metrics at the last epoch; of a measurement, its plain numbers."""
    result = run.record.result if run.record is not None and run.record.result is not None else {}
    found = result.get("valid", {name: each for name, each in result.items() if isinstance(each, int | float)})
    return dict(found)


def _settings(cell: Cell) -> str:
    job = job_as_dict(cell.runs[0].spec.job)
    pairs = [(name, value) for name, value in _flat(job) if name != "seed"]
    shown = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<h4>Settings</h4><dl>{shown}</dl><p class="where">All other settings have their defaults.</p>'


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value if isinstance(value, str) else json.dumps(value)
