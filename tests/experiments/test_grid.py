"""The grid: what is chosen, in which order it is run, and how long it may take."""

import subprocess
import sys
from dataclasses import replace
from itertools import groupby

import pytest

from idgnn.experiments.estimate import Estimator
from idgnn.experiments.grid import TABLES, Choice, in_order, quick
from idgnn.experiments.record import Record
from idgnn.experiments.spec import MeasureJob, TrainJob, job_as_dict


def test_no_pytorch_is_needed_to_know_what_would_run():
    code = (
        "import sys, idgnn.experiments.runner\nfrom idgnn.experiments.grid import Choice\n"
        "Choice(protocols=('text', 'released')).specs()\nprint('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"


def test_a_choice_is_what_was_asked_for():
    specs = Choice(("table2",), ("node-ENZYMES",), ("gcn", "full-gcn"), seeds=(0, 5)).specs()
    found = {(spec.table, spec.column, spec.row, spec.seed) for spec in specs}
    assert found == {("table2", "node-ENZYMES", row, seed) for row in ("gcn", "full-gcn") for seed in (0, 5)}
    everything = Choice(protocols=("text", "released")).specs()
    assert {spec.table for spec in everything} == set(TABLES)
    assert {spec.protocol for spec in everything} == {"text", "released"}


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(("table7",)), "there is no table 'table7'. Did you mean table"),
        (Choice(("table2",), ("node-ENZIMES",)), "no column 'node-ENZIMES' in table2. Did you mean node-ENZYMES?"),
        (Choice(("table2",), ("link-ENZYMES",)), "no column 'link-ENZYMES' in table2"),  # which Table 3 has
        (Choice(models=("transformer-xl",)), "there is no model 'transformer-xl'. Expected some of"),
        (Choice(("table2",), ("node-ENZYMES",), ("walks-gcn",)), "no run has such"),
    ],
)
def test_what_does_not_exist_is_said(choice, said):
    with pytest.raises(ValueError, match=said):
        choice.specs()


def test_a_table_is_complete_for_one_seed_before_the_next_and_the_longest_come_first():
    estimate = Estimator()
    specs = Choice(protocols=("text", "released")).specs()
    ordered = in_order(specs, lambda spec: estimate(spec.job).seconds)
    assert len({spec.key for spec in ordered}) == len(ordered) and {s.key for s in ordered} == {s.key for s in specs}
    timed = [spec for spec in ordered if spec.table == "table4"]
    assert ordered[: len(timed)] == timed, "what needs the machine for itself is out of the way first"
    rest = ordered[len(timed) :]
    groups = [key for key, _ in groupby(rest, key=lambda spec: (spec.seed, spec.protocol, spec.table))]
    assert len(groups) == len(set(groups)) and [seed for seed, _, _ in groups] == sorted(seed for seed, _, _ in groups)
    for _, group in groupby(rest, key=lambda spec: (spec.seed, spec.protocol, spec.table)):
        seconds = [estimate(spec.job).seconds for spec in group]
        assert seconds == sorted(seconds, reverse=True)


def test_quick_runs_are_smaller_and_have_other_keys():
    real = Choice(protocols=("text", "released"), seeds=(0,)).specs()
    keys, estimate = {spec.key for spec in real}, Estimator()
    for spec in real:
        small = quick(spec)
        assert (small.table, small.column, small.row, small.seed) == (spec.table, spec.column, spec.row, spec.seed)
        if isinstance(spec.job, TrainJob):
            assert small.key not in keys
            assert estimate(small.job).seconds < estimate(spec.job).seconds
    assert Choice(seeds=(0,), quick=True).specs() == [quick(spec) for spec in Choice(seeds=(0,)).specs()]


def test_what_was_measured_on_this_machine_is_the_estimate_for_other_seeds():
    first, second = Choice(("table2",), ("node-ENZYMES",), ("gcn",), seeds=(0, 1)).specs()
    other = Choice(("table2",), ("node-PROTEINS",), ("gcn",), seeds=(0,)).specs()[0]
    record = Record(first.key, job_as_dict(first.job), {}, seconds=12345.0, machine="here")
    before, after = Estimator("here"), Estimator("here", records=[record])
    assert after(second.job).seconds == 12345 and after(second.job).measured
    factor = 12345 / before(second.job).seconds
    assert (
        after(other.job).seconds == pytest.approx(before(other.job).seconds * factor) and not after(other.job).measured
    )
    elsewhere = Estimator("here", records=[replace(record, machine="there")])
    assert elsewhere(second.job) == before(second.job)
    assert Estimator("here", records=[replace(record, result=None, error="no")])(second.job) == before(second.job)


def test_estimates_grow_with_the_work():
    estimate = Estimator()

    def seconds(column: str, model: str) -> float:
        return estimate(Choice(("table2",), (column,), (model,), seeds=(0,)).specs()[0].job).seconds

    assert seconds("node-ENZYMES", "full-gcn") > seconds("node-ENZYMES", "gcn")
    assert seconds("node-PROTEINS", "gcn") > seconds("node-ENZYMES", "gcn")
    assert Estimator(kind="gpu", side_by_side=12)(MeasureJob("memory")).memory > 0
    full = Choice(("table2",), ("node-ENZYMES",), ("full-gcn",), seeds=(0,)).specs()[0].job
    assert Estimator(kind="gpu", side_by_side=12)(full).seconds < estimate(full).seconds


@pytest.mark.parametrize("seeds", [(0, -1), (1, 1), (2**70,)])
def test_seeds_are_different_numbers_from_0_on(seeds):
    with pytest.raises(ValueError, match="expected different numbers from 0 on"):
        Choice(seeds=seeds).specs()
