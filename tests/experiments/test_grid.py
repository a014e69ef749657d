"""The grid: what is chosen, in which order it is run, and how long it may take."""

import subprocess
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import median

import pytest

from idgnn.experiments.estimate import Estimator
from idgnn.experiments.grid import PROTOCOLS, Choice, in_order, quick
from idgnn.experiments.spec import MeasureJob, PeerJob, RunRecord, TrainJob, job_as_dict
from idgnn.experiments.store import read_records
from idgnn.experiments.tables import TABLES


def test_no_pytorch_is_needed_to_know_what_would_run():
    code = (
        "import sys, idgnn.experiments.runner\nfrom idgnn.experiments.grid import Choice\n"
        "Choice(protocols=('text', 'released')).specs()\nprint('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"


def test_a_choice_restricts_the_runs():
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
        (
            Choice(("table3",), models=("transformer-xl", "two-gcn")),
            "two-gcn is not part of the protocol text. Add --protocol rec",
        ),
        (Choice(("table2",), ("node-ENZYMES",), ("walks-gcn",)), "no run has this combination.*table6 \\(text\\)"),
    ],
)
def test_unknown_names_are_errors(choice, said):
    with pytest.raises(ValueError, match=said):
        choice.specs()


def test_a_table_is_complete_for_one_seed_before_the_next_and_the_longest_come_first():
    estimate = Estimator()
    specs = Choice(protocols=("text", "released")).specs()
    ordered = in_order(specs, lambda spec: estimate(spec.job).seconds)
    assert len({spec.key for spec in ordered}) == len(ordered) and {s.key for s in ordered} == {s.key for s in specs}
    timed = [spec for spec in ordered if spec.table == "table4"]
    assert ordered[: len(timed)] == timed, "timed runs come first"
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
        if isinstance(spec.job, TrainJob | PeerJob):
            assert small.key not in keys
            assert estimate(small.job).seconds < estimate(spec.job).seconds
    assert Choice(seeds=(0,), quick=True).specs() == [quick(spec) for spec in Choice(seeds=(0,)).specs()]


def one(table: str, column: str, model: str, seed: int = 0):
    return Choice((table,), (column,), (model,), seeds=(seed,)).specs()[0]


def record(spec, seconds: float, machine: str, **result) -> RunRecord:
    return RunRecord(spec.key, job_as_dict(spec.job), result, seconds=seconds, machine=machine)


def test_what_was_measured_on_this_machine_is_the_estimate_for_other_seeds():
    first, second, other = (one("table2", *each) for each in (
        ("node-ENZYMES", "gcn"), ("node-ENZYMES", "gcn", 1), ("node-PROTEINS", "gcn"),
    ))  # fmt: skip
    known = record(first, 12345.0, "here")
    before, after = Estimator("here"), Estimator("here", records=[known])
    assert after(second.job).seconds == 12345 and after(second.job).measured
    assert "no run is recorded" in before.source and "1 recorded run on such a processor" in after.source
    # All other estimates scale by the same factor, except for the seconds that a start takes.
    factor = 12345 / before(first.job).seconds
    assert after(other.job).seconds == pytest.approx(before(other.job).seconds * factor, rel=0.02)
    assert not after(other.job).measured
    assert Estimator("here", records=[replace(known, result=None, error="no")])(second.job) == before(second.job)
    learned = Estimator("here")
    learned.learn(known)
    assert learned(other.job) == after(other.job)


def test_runs_on_other_machines_of_the_same_kind_give_the_rate_until_one_finishes_here():
    first, other = one("table2", "node-ENZYMES", "gcn"), one("table2", "node-PROTEINS", "gcn")
    there, on_gpu = record(first, 5000.0, "there"), record(first, 5000.0, "there", gpu_memory=2**20)
    estimate = Estimator("here", records=[there])
    assert estimate(first.job).seconds == pytest.approx(5000) and not estimate(first.job).measured
    assert "1 recorded run on other CPUs" in estimate.source
    assert Estimator("here", records=[on_gpu])(other.job) == Estimator("here")(other.job)
    both = Estimator("here", records=[there, record(first, 100.0, "here")])
    assert both(other.job) == Estimator("here", records=[record(first, 100.0, "here")])(other.job)
    timed = one("table4", "forward", "gcn")
    assert Estimator("here", records=[record(timed, 77.0, "there", device="cpu")])(timed.job).seconds == 77


def test_estimates_grow_with_the_work():
    for kind in ("cpu", "gpu"):
        estimate = Estimator(kind=kind)

        def seconds(column: str, model: str, estimate: Estimator = estimate) -> float:
            return estimate(one("table2", column, model).job).seconds

        assert seconds("node-ENZYMES", "full-gcn") > seconds("node-ENZYMES", "gcn")
        assert seconds("node-PROTEINS", "gcn") > seconds("node-ENZYMES", "gcn")
        assert estimate(MeasureJob("memory")).memory > 0


def test_estimates_of_the_published_results_are_right_within_a_factor_of_ten():
    """Leave one machine out: the rate of all other CPUs, or GPUs, predicts its runs."""
    records = read_records(Path(__file__).parents[2] / "results" / "records.jsonl.gz").records
    specs = {spec.key: spec for spec in Choice(protocols=PROTOCOLS).specs()}
    for kind, machine in (("gpu", "NVIDIA H200, 12 runs side by side"), ("cpu", "AMD EPYC, 1 run side by side")):
        others = [record for record in records.values() if record.machine != machine]
        estimate = Estimator(machine, kind, others)
        trained = [each for each in records.values() if each.machine == machine and "train" in each.job]
        ratios = [estimate(specs[each.key].job).seconds / each.seconds for each in trained]
        assert len(ratios) > 20 and 0.3 < median(ratios) < 3
        assert sum(0.1 < ratio < 10 for ratio in ratios) > 0.95 * len(ratios)


def test_memory_is_estimated_within_a_factor_of_five_for_every_kind_of_network():
    records = read_records(Path(__file__).parents[2] / "results" / "records.jsonl.gz").records
    estimate, ratios = Estimator(kind="gpu"), {}
    for spec in Choice(protocols=PROTOCOLS).specs():
        record = records.get(spec.key)
        if isinstance(spec.job, TrainJob) and record and record.result and "gpu_memory" in record.result:
            model = spec.job.settings.model
            kind = (spec.job.settings.task.level, model.identity, model.colors)
            ratios.setdefault(kind, []).append(estimate(spec.job).memory / record.result["gpu_memory"])
    assert len(ratios) == 12  # plain, fast, one color and two, on nodes, pairs and graphs
    for kind, found in ratios.items():
        assert 1 / 3 < median(found) < 3, kind
        assert sum(0.2 < ratio < 5 for ratio in found) >= 0.9 * len(found), kind


@pytest.mark.parametrize("seeds", [(0, -1), (1, 1), (2**70,)])
def test_seeds_are_different_numbers_from_0_on(seeds):
    with pytest.raises(ValueError, match="expected different numbers from 0 on"):
        Choice(seeds=seeds).specs()
