"""A table that is not in the paper: errors, of which lower is better, and protocols of its own."""

from dataclasses import replace

import pytest

from idgnn.experiments.expectations import BetterThan, Bound, Bounds
from idgnn.experiments.readings import last, measured
from idgnn.experiments.spec import MeasureJob, Spec
from idgnn.experiments.table import Column, Row, Table
from idgnn.report.expectations import expectations
from idgnn.report.pages import latex, markdown, page
from idgnn.report.report import Report
from idgnn.report.results import fill, runs_of
from idgnn.report.terminal import plain
from tests.report.made import record


def specs(protocol, seeds):
    return [
        Spec("errors", "all", row, protocol, seed, MeasureJob("memory", (("row", row), ("protocol", protocol)), seed))
        for row in ("plain", "colored")
        for seed in seeds
    ]


TABLE = Table(
    "errors",
    "Errors & counts",
    (Row("plain", "Plain", "GNN"), Row("colored", "Colored", "GNN"), Row("quoted", "Quoted <2020>", "Others")),
    (
        Column("mae", "MAE", last("mae"), runs="all", metric="mae", lower_is_better=True, digits=4),
        Column("pairs", "pairs left", measured(lambda result, spec: result["pairs"]), runs="all", digits=0,
               compared=False, lower_is_better=True),
    ),
    specs,
    {"all": {"quoted": (0.0103,), "plain": (0.3, 0.01)}},
    ("text", "released"),
    expectations=(
        Bounds("low", "Low errors", "At most 0.0010.", ("colored",), (Bound("low", ("mae",), ("colored",), 0.0010),)),
        BetterThan("order", "Colored below plain", "Lower.", "colored", "plain", "lower"),
    ),
)  # fmt: skip


@pytest.fixture
def table():
    values = {"plain": 0.32, "colored": 0.0012}
    records = {}
    for found in runs_of(TABLE).values():
        for spec in found:
            made = record(spec, values[spec.row], metric="mae")
            records[spec.key] = replace(made, result={**(made.result or {}), "pairs": 5 * (spec.row == "plain")})
    return fill(TABLE, runs_of(TABLE), records)


def test_the_lowest_error_is_the_best_and_a_higher_one_is_worse(table):
    errors, pairs = TABLE.columns
    assert [cell.number for cell in table.column("text", errors, ("GNN",))] == ["0.3200 ± 0.0000", "0.0012 ± 0.0000"]
    assert [cell.status for cell in table.column("text", errors, ("GNN",))] == ["worse", "alone"]
    assert [table.mark("text", row, errors) for row in TABLE.rows] == ["", "column", ""]
    assert [table.mark("published", row, errors) for row in TABLE.rows] == ["family", "", "column"]
    assert [cell.number for cell in table.column("text", pairs, ("GNN",))] == ["5 ± 0", "0 ± 0"]


def test_expectations_know_that_lower_is_better(table):
    _, low, order = expectations([table])
    assert low.lines[0].cells[0].whole == "0.0012 ± 0.0000 ✗"  # with three digits it would hold
    assert order.lines[1].cells[2].whole == "+0.3188 ✓"


def test_every_format_shows_it(table):
    report = Report((table,))
    for text in (page(report), markdown(report).replace("\u00a0", " "), latex(report), plain(report)):
        assert "pairs left" in text and "0.0012" in text and "Low errors" in text
    assert "Errors &amp; counts" in page(report) and "Quoted &lt;2020&gt;" in page(report)
