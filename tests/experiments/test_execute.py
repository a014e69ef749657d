"""A job gives what training gives, and its key names it."""

import subprocess
import sys
from dataclasses import replace

import pytest

from idgnn.experiments import execute as module
from idgnn.experiments import spec
from idgnn.experiments.execute import attempt, check_generated, execute, machine_of, runs_alone
from idgnn.experiments.grid import Choice
from idgnn.experiments.spec import MeasureJob, TrainJob, job_as_dict, key_of
from idgnn.graphs.catalog import find
from idgnn.graphs.load import load
from idgnn.graphs.sources import FileSource, Selection
from idgnn.graphs.synthetic import random_regular
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings
from idgnn.training.train import train
from tests.experiments.tiny_specs import broken, tiny


@pytest.mark.parametrize("task", ["node-clustering", "link-prediction"])
def test_a_job_gives_what_train_gives(task):
    job = tiny(3, epochs=4).job
    assert isinstance(job, TrainJob)
    settings = replace(job.settings, task=replace(job.settings.task, name=task, test=0.25))
    settings = replace(settings, training=replace(settings.training, eval_every=2))
    found = execute(TrainJob(settings), "cpu")
    training = replace(settings.training, device="cpu")
    run = train(
        settings.data,
        settings.task,
        model=settings.model,
        training=training,
        selection=settings.selection,
        seed=settings.seed,
    )
    last = run.result["last"]
    assert (found["valid"], found["test"]) == (last["valid"], last["test"])
    for name in ("best", "metric", "num_parameters", "width"):
        assert found[name] == run.result[name]
    metric = found["metric"]
    looks = [[each.epoch, each.loss, each.metrics["valid"][metric]] for each in run.epochs if each.metrics]
    assert [look[0] for look in looks] == [2, 4]
    assert found["curve"] == [pytest.approx(look, rel=1e-4) for look in looks]


def test_where_the_metric_of_two_classes_is_auc_accuracy_is_stored_as_well(data_dir):
    job = Choice(("table6",), ("class-MUTAG",), ("gcn",), seeds=(0,), quick=True).specs()[0].job
    found = execute(job, "cpu")
    assert found["metric"] == "roc_auc"
    assert [epoch for epoch, _ in found["curves"]["accuracy"]] == [look[0] for look in found["curve"]]
    assert found["curves"]["accuracy"][-1][1] == pytest.approx(found["valid"]["accuracy"], rel=1e-4)


def test_jobs_share_data_and_problem_if_they_can(monkeypatch):
    module._problem.cache_clear()
    module._dataset.cache_clear()
    for each in (tiny(0), tiny(0, "sage"), tiny(0, identity="none"), tiny(1)):
        execute(each.job, "cpu")
    assert module._problem.cache_info().misses == 2 and module._dataset.cache_info().misses == 1


def test_a_record_has_the_job_and_its_result_or_error():
    record = attempt(tiny().job, "cpu", "here")
    assert record.key == tiny().key and record.job == job_as_dict(tiny().job)
    assert record.error is None and record.result is not None and record.seconds > 0
    assert record.machine == "here" and record.date and "torch" in record.versions
    failed = attempt(broken().job, "cpu", "here")
    assert failed.result is None and (failed.error or "").startswith("ValueError: there is no dataset")


def test_keys_are_equal_for_equal_jobs_in_every_process():
    code = "from tests.experiments.tiny_specs import tiny; print(tiny(7, 'gin').key)"
    for seed in "12":  # of Python's own hashes
        said = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert said.stdout.strip() == tiny(7, "gin").key


def test_keys_differ_with_every_setting_but_not_with_the_device():
    job = tiny().job
    assert isinstance(job, TrainJob)
    settings = job.settings
    others = [
        replace(settings, data="ScaleFree"),
        replace(settings, seed=1),
        replace(settings, selection=Selection(smallest=9)),
        replace(settings, task=replace(settings.task, bins=9)),
        replace(settings, model=replace(settings.model, width=5)),
        replace(settings, training=replace(settings.training, lr=0.02)),
    ]
    keys = {key_of(TrainJob(each)) for each in (settings, *others)} | {key_of(TrainJob(settings, "walks"))}
    assert len(keys) == len(others) + 2
    elsewhere = replace(settings.training, device="cuda:1", cuda_graphs="on", compile=True)
    assert key_of(TrainJob(replace(settings, training=elsewhere))) == key_of(job)


def test_keys_differ_with_the_version_of_the_data(monkeypatch, tmp_path):
    generated, read = tiny().job, tiny(data="ENZYMES").job
    measured = [MeasureJob("run-time", (("dataset", "ENZYMES"),)), MeasureJob("regular-graphs")]
    jobs = [generated, read, *measured]
    before = [key_of(job) for job in jobs]
    monkeypatch.setattr(spec, "GENERATED", dict.fromkeys(spec.GENERATED, "other"))
    raw = spec.expected(find("ENZYMES"))
    monkeypatch.setattr(spec, "expected", lambda entry: {**raw, next(iter(raw)): "other"})
    spec._version_of.cache_clear()
    assert not set(before) & {key_of(job) for job in jobs}
    monkeypatch.undo()
    spec._version_of.cache_clear()
    assert before == [key_of(job) for job in jobs]
    edges = tmp_path / "edges.csv"
    files = TrainJob(RunSettings(FileSource(edges), TaskSettings(name="link-prediction")))
    edges.write_text("source,target\nAnn,Ben\n")
    first = key_of(files)
    edges.write_text("source,target\nAnn,Bob\n")
    assert key_of(files) != first


def test_generated_graphs_have_the_version_in_the_keys_and_others_are_refused():
    for name in ("ScaleFree", "SmallWorld"):
        graphs = load(name).graphs
        check_generated(name, graphs)
        with pytest.raises(ValueError, match=f"the graphs of {name} have the checksum .* Install networkx"):
            check_generated(name, graphs[::-1])
    check_generated("random-regular", random_regular(10, 16, 4))


def test_only_timed_jobs_run_alone():
    assert runs_alone(MeasureJob("run-time"))
    assert not runs_alone(MeasureJob("memory")) and not runs_alone(tiny().job)
    assert machine_of("cpu", 1).endswith(", 1 run side by side") and "3 runs" in machine_of("cpu", 3)
