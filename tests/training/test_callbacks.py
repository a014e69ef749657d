"""Trackers receive the same numbers under the same names; a missing package is named."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from idgnn.choices import Tracker
from idgnn.training.callbacks import Callback, flat, make_tracker
from idgnn.training.run_folder import Epoch
from idgnn.training.train import train
from tests.training.small_problems import QUICK, SMALL, graphs_for, settings_for

EPOCH = Epoch(7, 0.5, 0.01, 4, 3, 1.5, {"valid": {"mrr": 0.25, "hits@10": 0.75}, "test": {"mrr": 0.5}})
NUMBERS = {
    "train/loss": 0.5,
    "lr": 0.01,
    "seconds": 1.5,
    "valid/mrr": 0.25,
    "valid/hits@10": 0.75,
    "test/mrr": 0.5,
}
MODULES = {"tensorboard": "torch.utils.tensorboard.writer", "wandb": "wandb", "mlflow": "mlflow"}
RECORD = {"settings": {"data": "ScaleFree", "seed": 3, "model": {"conv": "gcn", "width": None}}, "dataset": {}}


class Noted(list):
    """Notes every call of every attribute: its name, its arguments."""

    def __getattr__(self, name):
        def call(*args, **options):
            self.append((name, args, options))
            return self

        return call


@pytest.mark.parametrize("name", get_args(Tracker))
def test_a_tracker_that_is_not_installed_is_an_error_with_the_package(name, monkeypatch):
    monkeypatch.setitem(sys.modules, MODULES[name], None)
    with pytest.raises(ValueError, match=rf"needs a package: pip install 'idgnn\[{name}\]'"):
        make_tracker(name, Path("runs/one"))


def test_the_names_of_numbers():
    assert flat(EPOCH) == NUMBERS
    assert flat(Epoch(1, 0.5, 0.01, 4, 3, 1.5)) == {"train/loss": 0.5, "lr": 0.01, "seconds": 1.5}


def told(name: str, monkeypatch, result) -> Noted:
    calls = Noted()
    fake = SimpleNamespace(SummaryWriter=lambda folder: calls.SummaryWriter(folder)) if name == "tensorboard" else calls
    monkeypatch.setitem(sys.modules, MODULES[name], fake)
    callback = make_tracker(name, Path("runs/one"))
    callback.begin(RECORD, 1234)
    callback.epoch(EPOCH)
    callback.end(result)
    return calls


def test_tensorboard(monkeypatch):
    first, *points, last = told("tensorboard", monkeypatch, None)
    assert first == ("SummaryWriter", (str(Path("runs/one")),), {})
    assert points == [("add_scalar", (name, value, 7), {}) for name, value in NUMBERS.items()]
    assert last == ("close", (), {})


@pytest.mark.parametrize(("result", "code"), [({"metric": "mrr"}, 0), (None, 1)])
def test_wandb(monkeypatch, result, code):
    begin, epoch, end = told("wandb", monkeypatch, result)
    assert begin[0] == "init" and begin[2]["name"] == "one" and begin[2]["project"] == "idgnn"
    assert begin[2]["config"] == RECORD | {"num_parameters": 1234}
    assert epoch == ("log", (NUMBERS,), {"step": 7})
    assert end == ("finish", (), {"exit_code": code})


@pytest.mark.parametrize(("result", "status"), [({"metric": "mrr"}, "FINISHED"), (None, "KILLED")])
def test_mlflow(monkeypatch, result, status):
    calls = told("mlflow", monkeypatch, result)
    assert calls[:2] == [("set_experiment", ("idgnn",), {}), ("start_run", (), {"run_name": "one"})]
    parameters = {name: value for call in calls if call[0] == "log_params" for name, value in call[1][0].items()}
    assert parameters == {"data": "ScaleFree", "seed": 3, "model.conv": "gcn", "model.width": None}
    allowed = {name.replace("@", "_at_"): value for name, value in NUMBERS.items()}
    assert calls[-2:] == [("log_metrics", (allowed,), {"step": 7}), ("end_run", (status,), {})]


class Diary(Callback):
    def __init__(self, stop_after: int | None = None) -> None:
        self.seen: list = []
        self.stop_after = stop_after

    def begin(self, record, num_parameters):
        self.seen.append(("begin", set(record), num_parameters))

    def epoch(self, epoch):
        self.seen.append(epoch)
        if epoch.epoch == self.stop_after:
            raise KeyboardInterrupt

    def end(self, result):
        self.seen.append(result)


def test_a_callback_hears_of_everything_in_order():
    diary, silent = Diary(), Callback()
    task = "graph-classification"
    run = train(graphs_for(task), settings_for(task), model=SMALL, training=QUICK, callbacks=[silent, diary])
    begin, *epochs, end = diary.seen
    assert begin == ("begin", {"settings", "dataset", "task"}, run.result["num_parameters"])
    assert epochs == run.epochs and len(epochs) == 3 and end == run.result


def test_callbacks_that_began_are_ended_if_another_fails_to_begin():
    class Offline(Diary):
        def begin(self, record, num_parameters):
            raise RuntimeError("no network")

    diary, offline, task = Diary(), Offline(), "graph-classification"
    with pytest.raises(RuntimeError, match="no network"):
        train(graphs_for(task), settings_for(task), model=SMALL, training=QUICK, callbacks=[diary, offline])
    assert len(diary.seen) == 2 and diary.seen[-1] is None and not offline.seen


def test_a_callback_hears_of_an_interruption():
    diary, task = Diary(stop_after=2), "graph-classification"
    with pytest.raises(KeyboardInterrupt):
        train(graphs_for(task), settings_for(task), model=SMALL, training=QUICK, callbacks=[diary])
    assert len(diary.seen) == 4 and diary.seen[-1] is None
