"""Where the numbers come from."""

from dataclasses import replace

import pytest

from idgnn.report.report import Report
from idgnn.report.summary import run_summary, runs_by_table
from tests.report.made import AS_PUBLISHED, filled, records_of


def tables(machines=("H200",), **result):
    made = records_of(AS_PUBLISHED)
    records = {
        key: replace(each, machine=machines[place % len(machines)], result={**(each.result or {}), **result})
        for place, (key, each) in enumerate(made.items())
    }
    return [filled("table2", records)] * 2


def test_each_run_counts_once():
    known = run_summary(tables())
    assert (known.finished, known.failed, known.total) == (36, 0, 768)
    assert [(machine.name, machine.runs) for machine in known.machines] == [("H200", 36)]
    assert known.last.startswith("2026-11-14") and known.sentences()[-1] == "Run on 2026-11-14."
    assert run_summary([]).sentences() == ["0 of 0 runs finished."]


def test_runs_that_share_a_machine_count_with_their_share():
    alone, shared = (
        run_summary(tables()),
        run_summary(tables(("EPYC, 12 runs side by side", "EPYC, 1 run side by side"))),
    )
    assert alone.hours(gpu=False) == pytest.approx(0.36) and alone.hours(gpu=True) == 0  # 36 runs of 36 seconds
    assert shared.hours(gpu=False) == pytest.approx(0.18 + 0.18 / 12)
    assert [(machine.name, machine.side_by_side) for machine in shared.machines] == [("EPYC", 1), ("EPYC", 12)]


def test_a_gpu_is_recognized_by_its_records():
    assert run_summary(tables(("H200, 4 runs side by side",), gpu_memory=1)).hours(gpu=True) == pytest.approx(0.09)
    assert run_summary(tables(device="cuda:0")).hours(gpu=True) == pytest.approx(0.36)
    assert run_summary(tables(device="cpu")).hours(gpu=True) == 0


def test_the_runs_of_every_table():
    block = runs_by_table(tables()[:1])
    assert [[cell.text for cell in line.cells] for line in block.lines] == [["36 of 408", "0 of 360"]]


def test_without_a_gpu_the_hours_are_those_of_cpus():
    assert "They took 0.4 CPU hours;" in run_summary(tables()).sentences()[1]
    assert Report(tuple(tables())).cards()[1] == ("CPU hours", "0.4", "")
    on_gpu = tables(device="cuda:0")
    assert "They took 0.4 GPU hours and 0.0 CPU hours;" in run_summary(on_gpu).sentences()[1]
    assert Report(tuple(on_gpu)).cards()[1] == ("GPU hours", "0.4", "and 0.0 CPU hours")
