"""A run and its folder: started, stopped, resumed, finished."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from idgnn.graphs.sources import Selection
from idgnn.models.saving import Saved
from idgnn.training import single_run as module
from idgnn.training.callbacks import Callback
from idgnn.training.run_folder import RunFolder
from idgnn.training.train import train
from idgnn.training.trained import Run
from tests.training.small_problems import QUICK, SMALL, TASKS, graphs_for, settings_for

TASK = "node-clustering"
KEPT = {"run.json", "metrics.jsonl", "predictions.csv", "model.safetensors", "model.json"}


class StopAfter(Callback):
    """Interrupts a run, as Ctrl-C does."""

    def __init__(self, last: int) -> None:
        self.last = last

    def epoch(self, epoch) -> None:
        if epoch.epoch == self.last:
            raise KeyboardInterrupt


def start(folder: Path, task: str = TASK, resume: bool = False, stop: int = 0, **options) -> Run:
    return train(
        options.pop("graphs", None) or graphs_for(task),
        options.pop("asked", settings_for(task)),
        model=options.pop("model", SMALL),
        training=replace(QUICK, **options.pop("training", {})),
        folder=folder,
        resume=resume,
        callbacks=[StopAfter(stop)],
        **options,
    )


def stopped(folder: Path, after: int = 2, **options) -> Path:
    with pytest.raises(KeyboardInterrupt):
        start(folder, stop=after, **options)
    return folder


def content(folder: Path) -> dict[str, object]:
    """What has to be the same in two runs: everything but the time they took."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    record = json.loads((folder / "run.json").read_text())
    for name in ("started", "finished", "checksum"):
        assert record.pop(name)
    assert record["result"].pop("seconds") > 0
    return {
        "files": {path.name for path in folder.iterdir()} - {".lock"},
        "metrics": [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines],
        "run": record,
        **{name: (folder / name).read_bytes() for name in KEPT - {"run.json", "metrics.jsonl"}},
    }


@pytest.mark.parametrize("task", TASKS)
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(task, tmp_path):
    start(tmp_path / "whole", task)
    stopped(tmp_path / "stopped", after=1, task=task)
    start(tmp_path / "stopped", task, resume=True)
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")
    assert content(tmp_path / "whole")["files"] == KEPT


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_crash_at_any_file_is_survived(before, tmp_path, monkeypatch):
    """The process ends just before, or just after, a file takes its name; for each file in turn."""
    start(tmp_path / "whole")
    expected = content(tmp_path / "whole")
    move, fails = Path.replace, []

    def crash(self, target):
        fails[0] -= 1
        if fails[0] == 0 and before:
            raise KeyboardInterrupt
        moved = move(self, target)
        if fails[0] == 0:
            raise KeyboardInterrupt
        return moved

    crashes = 0
    for number in range(1, 100):
        folder = tmp_path / f"crash-{number}"
        fails[:] = [number]
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", crash)
            try:
                start(folder)
                break
            except KeyboardInterrupt:
                crashes += 1
        if not RunFolder(folder).exists():
            start(folder)  # nothing was there yet
        elif RunFolder(folder).read()["result"] is None:
            start(folder, resume=True)
        else:  # it was finished but for the checkpoint, which is of no more use
            assert number == 8 and not before
            (folder / "checkpoint.safetensors").unlink()
        assert content(folder) == expected
    assert crashes == 8  # run.json, three checkpoints, predictions, two of the model, run.json


def test_lines_after_the_checkpoint_come_again(tmp_path, monkeypatch):
    """Killed between a line and the checkpoint of its epoch."""
    start(tmp_path / "whole")
    saves = []

    def save(trainer, path):
        saves.append(path)
        if len(saves) == 2:
            raise KeyboardInterrupt
        save_checkpoint(trainer, path)

    save_checkpoint = module.save_checkpoint
    monkeypatch.setattr(module, "save_checkpoint", save)
    stopped(tmp_path / "stopped", after=0)
    assert len((tmp_path / "stopped" / "metrics.jsonl").read_text().splitlines()) == 2
    start(tmp_path / "stopped", resume=True)
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")


@pytest.mark.parametrize("half", ['{"epoch": 3, "los', "{", '{"epoch": 3}'])
def test_half_a_last_line_is_survived(half, tmp_path):
    start(tmp_path / "whole")
    folder = stopped(tmp_path / "stopped")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(half)
    assert [epoch.epoch for epoch in RunFolder(folder).epochs()] == [1, 2]
    start(folder, resume=True)
    assert content(folder) == content(tmp_path / "whole")


def test_without_its_checkpoint_a_run_starts_over(tmp_path):
    start(tmp_path / "whole")
    folder = stopped(tmp_path / "stopped")
    (folder / "checkpoint.safetensors").unlink()
    start(folder, resume=True)
    assert content(folder) == content(tmp_path / "whole")


def test_a_finished_run_cannot_be_gone_on_with_or_overwritten(tmp_path):
    start(tmp_path)
    before = content(tmp_path)
    with pytest.raises(ValueError, match=r"is finished. Start another in a new folder"):
        start(tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"already holds a run. Continue it"):
        start(tmp_path)
    assert content(tmp_path) == before


def test_a_stopped_run_is_not_overwritten(tmp_path):
    stopped(tmp_path)
    with pytest.raises(ValueError, match="already holds a run"):
        start(tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"training": {"lr": 0.02}},
        {"training": {"epochs": 4}},
        {"model": replace(SMALL, width=4)},
        {"asked": replace(settings_for(TASK), bins=3)},
    ],
    ids=["seed", "lr", "epochs", "width", "bins"],
)
def test_other_settings_are_refused(other, tmp_path):
    stopped(tmp_path)
    with pytest.raises(ValueError, match=r"has other settings. Resume it with its own"):
        start(tmp_path, resume=True, **other)


def changed(how: str) -> list:
    graphs = graphs_for(TASK)
    if how == "a feature":
        graphs[3].x[0, 0] += 1e-6
    elif how == "an edge":
        graphs[3].edge_index = graphs[3].edge_index.flip(0)
    elif how == "the order":
        graphs[0], graphs[4] = graphs[4], graphs[0]
    else:
        graphs.pop()
    return graphs


@pytest.mark.parametrize("how", ["a feature", "an edge", "the order", "a graph"])
def test_changed_data_are_refused(how, tmp_path):
    stopped(tmp_path)
    with pytest.raises(ValueError, match="the data have changed since the run"):
        start(tmp_path, resume=True, graphs=changed(how))


def test_isolated_nodes_that_come_are_changed_data(tmp_path):
    """Graphs without features have num_nodes only."""

    def graphs(extra: int) -> list:
        found = graphs_for(TASK)
        for graph in found:
            graph.num_nodes = graph.num_nodes + extra
            del graph.x
        return found

    stopped(tmp_path, graphs=graphs(0))
    with pytest.raises(ValueError, match="the data have changed since the run"):
        start(tmp_path, resume=True, graphs=graphs(1))


def test_there_is_nothing_to_go_on_with(tmp_path):
    with pytest.raises(ValueError, match=r"nothing was trained in .* yet: .* Start the run again, without --resume"):
        start(tmp_path, resume=True)


def test_a_run_that_was_killed_before_it_began_is_started_again(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".run.json.0123abcd.part").touch()
    (tmp_path / ".gitignore").write_text("*")
    (tmp_path / ".git").mkdir()
    with pytest.raises(ValueError, match=r"nothing was trained in .* yet: .* Start the run again, without --resume"):
        RunFolder(tmp_path).read()
    start(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == KEPT | {".lock", ".gitignore", ".git"}


def test_a_file_is_no_run(tmp_path):
    (tmp_path / "friends.csv").write_text("source,target\n")
    with pytest.raises(ValueError, match=r"friends.csv is a file, expected the folder of a run. Name that folder"):
        RunFolder(tmp_path / "friends.csv").read()


@pytest.mark.parametrize("seed", [-1, 0.5, True, "0", 2**63])
def test_a_seed_is_a_whole_number_from_0_on(seed):
    with pytest.raises(ValueError, match=rf"seed is {seed!r}, expected a whole number from 0 to"):
        start(None, seed=seed)


def test_graphs_from_python_are_called_the_graphs():
    unknown = graphs_for(TASK)
    for graph in unknown:
        graph.y = torch.full((graph.num_nodes,), -1)
    with pytest.raises(ValueError, match="no label for task node-classification is known in the graphs"):
        start(None, graphs=unknown, asked="node-classification")
    with pytest.raises(ValueError, match=r"no split comes with the graphs. Use split random or folds"):
        start(None, asked=replace(settings_for(TASK), split="provided"))


@pytest.mark.filterwarnings("ignore::idgnn.training.run_folder.ChangedRecordWarning")
def test_a_run_resumes_whatever_name_of_the_graphs_was_written(tmp_path):
    """The graphs are identified by their checksum, not by a name."""
    stopped(tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"]["data"] == "python"
    record["dataset"]["name"] = "python"
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert start(tmp_path, resume=True).result["last"]["epoch"] == 3


def test_resuming_needs_a_folder():
    with pytest.raises(ValueError, match="folder"):
        start(None, resume=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        pytest.param("3"),
        pytest.param("null"),
        '{"settings": {}}',
        "\x00",
    ],
)
def test_a_record_that_is_none_is_refused(text, tmp_path):
    folder = stopped(tmp_path)
    (folder / "run.json").write_text(text)
    for use in (lambda: start(folder, resume=True), lambda: Run.load(folder)):
        with pytest.raises(ValueError, match=r"run.json is not a file that a run writes"):
            use()


@pytest.mark.filterwarnings("ignore::idgnn.training.run_folder.ChangedRecordWarning")
def test_a_record_with_half_its_settings_is_refused(tmp_path):
    folder = stopped(tmp_path)
    record = json.loads((folder / "run.json").read_text())
    del record["settings"]["model"]
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"run.json|model"):
        start(folder, resume=True)


def test_a_broken_line_in_the_middle_is_refused(tmp_path):
    folder = stopped(tmp_path)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join(['{"epo', *lines[1:], ""]))
    with pytest.raises(ValueError, match=r"metrics.jsonl"):
        start(folder, resume=True)


def test_a_checkpoint_that_is_none_is_refused(tmp_path):
    folder = stopped(tmp_path)
    (folder / "checkpoint.safetensors").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"is not a checkpoint of a run .* Start the run again"):
        start(folder, resume=True)


def test_two_at_a_time_are_refused(tmp_path):
    with RunFolder(tmp_path).lock():
        with pytest.raises(ValueError, match="another process is training in"):
            start(tmp_path)
        assert not RunFolder(tmp_path).exists()
        script = "from pathlib import Path; from idgnn.training.run_folder import RunFolder; import sys\n"
        script += "with RunFolder(Path(sys.argv[1])).lock(): print('alone')"
        command = [sys.executable, "-c", script, str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        refused = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert refused.returncode and "another process is training in" in refused.stderr
    allowed = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert allowed.stdout == "alone\n"
    start(tmp_path)  # and the lock is free again


def test_a_run_that_fails_leaves_the_old_model(tmp_path, monkeypatch):
    """The disk is full when the model is to be written; the run can be resumed."""

    def full(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Saved, "save", full)
        with pytest.raises(OSError, match="no space left"):
            start(tmp_path / "run")
    assert RunFolder(tmp_path / "run").read()["result"] is None
    start(tmp_path / "run", resume=True)
    start(tmp_path / "whole")
    assert content(tmp_path / "run") == content(tmp_path / "whole")


@pytest.mark.parametrize("task", TASKS)
def test_metrics_follow_from_the_written_predictions(task, tmp_path):
    """The metric of the last epoch, computed again from the table."""
    run = start(tmp_path, task)
    with (tmp_path / "predictions.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["part"] for row in rows} == {"valid"}
    last = run.result["last"]["valid"]
    if task == "node-regression":
        value, label = (torch.tensor([float(row[name]) for row in rows]) for name in ("value", "label"))
        assert abs(float((value - label).abs().mean()) - last["mae"]) < 1e-4
    elif task in ("link-prediction", "graph-classification"):
        name = "probability" if task == "link-prediction" else "probability_1"
        right = torch.tensor([(float(row[name]) > 0.5) == (row["label"] == "1") for row in rows])
        assert abs(float(right.float().mean()) - last["accuracy"]) < 1e-6
    else:
        right = torch.tensor([row["class"] == row["label"] for row in rows])
        assert abs(float(right.float().mean()) - last["accuracy"]) < 1e-6


def test_the_result_names_the_last_and_the_best_epoch(tmp_path):
    run = start(tmp_path, "node-regression", training={"epochs": 6, "lr": 0.1, "schedule": "constant"})
    errors = [epoch.metrics["valid"]["mae"] for epoch in run.epochs]
    best = errors.index(min(errors))
    assert run.result["metric"] == "mae" and run.result["last"] == {"epoch": 6, **run.epochs[-1].metrics}
    assert run.result["best"] == {"epoch": best + 1, **run.epochs[best].metrics}
    assert run.result["width"] == 8 and run.result["num_parameters"] == sum(p.numel() for p in run.model.parameters())


def test_a_run_without_a_folder_is_the_same(tmp_path):
    ours, theirs = start(None), start(tmp_path)
    assert ours.folder is None and theirs.folder == tmp_path
    assert [replace(epoch, seconds=0) for epoch in ours.epochs] == [
        replace(epoch, seconds=0) for epoch in theirs.epochs
    ]
    for mine, other in zip(ours.model.state_dict().values(), theirs.model.state_dict().values(), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("data", [[1, 2, 3], "python"], ids=["numbers", "python"])
def test_anything_but_graphs_is_refused(data):
    with pytest.raises(ValueError, match=r"graph|dataset"):
        train(data, TASK, model=SMALL, training=QUICK)


def test_a_selection_is_of_graphs_from_memory_too(tmp_path):
    train(graphs_for(TASK), settings_for(TASK), model=SMALL, training=QUICK, selection=Selection(8), folder=tmp_path)
    assert RunFolder(tmp_path).read()["dataset"]["graphs"] == 8  # half of those of 6 to 9 nodes


def test_integers_in_features_are_read_as_amounts_and_a_warning_says_so():
    graphs = graphs_for(TASK, 6)
    for graph in graphs:
        graph.x = torch.arange(graph.num_nodes).view(-1, 1) % 3
    with pytest.warns(UserWarning, match=r"x holds integers, which are read as amounts\. If they are categories"):
        coded = train(graphs, TASK, model=SMALL, training=QUICK)
    for graph in graphs:
        graph.x = graph.x.float()
    assert train(graphs, TASK, model=SMALL, training=QUICK).epochs[0].loss == coded.epochs[0].loss
