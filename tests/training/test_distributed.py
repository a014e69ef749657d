"""Training by two processes is training by one, with half of each batch in each."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from idgnn.training.callbacks import Callback
from idgnn.training.processes import SINGLE_PROCESS, Processes, device_name
from idgnn.training.run_settings import TrainOptions
from idgnn.training.train import train
from idgnn.training.trainer import Trainer
from tests.training.small_problems import QUICK, SMALL, assert_same_weights, network_for, problem_for, weights
from tests.training.test_roots import ROOTS, graph_for, large_problem
from tests.training.two_processes import in_two

# Newer versions of Python warn of what pytest-xdist makes of every process.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def trainer_of(processes: Processes, problem, options: TrainOptions, norms: bool = True) -> Trainer:
    """A trainer of a network that is the same in all processes; without norms nothing in it depends on the batch."""
    model = network_for(problem)
    if not norms:
        model.encoder.norms = nn.ModuleList(nn.Identity() for _ in model.encoder.norms)
    return Trainer(model, problem, options, processes=processes)


CASES = {
    "nodes": (lambda: large_problem("node-classification"), replace(ROOTS, query_batch_size=7)),
    "quantities": (lambda: large_problem("node-regression"), replace(ROOTS, query_batch_size=7)),
    "links": (lambda: large_problem("link-prediction"), replace(ROOTS, query_batch_size=11, fanout=(4, 3))),
    "pairs by graph": (lambda: problem_for("shortest-path"), replace(QUICK, batch_size=5)),
    "nodes by graph": (lambda: problem_for("node-clustering"), replace(QUICK, batch_size=3)),
    "graphs": (lambda: problem_for("graph-classification"), replace(QUICK, batch_size=5)),
}


@pytest.mark.parametrize("case", CASES)
def test_evaluation_is_that_of_one_process(case, tmp_path):
    make, options = CASES[case]
    problem = make()

    def evaluate(processes: Processes):
        trainer = trainer_of(processes, problem, options)
        # Equal scores, as those of pairs that no color joins, are equal up to rounding, which other batches change.
        trainer.model.register_forward_hook(lambda model, inputs, out: out.round(decimals=4))
        return trainer.evaluate(), trainer.predict("valid").out

    metrics, out = evaluate(SINGLE_PROCESS)
    for found, answers in in_two(evaluate, tmp_path):
        assert answers.shape == out.shape and torch.allclose(answers, out, atol=1e-4)
        for name in metrics:
            assert found[name] == pytest.approx(metrics[name], rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("case", CASES)
def test_a_step_has_the_gradients_of_one_process(case, tmp_path):
    """With shares of different sizes: batches have odd numbers of queries, or graphs with different numbers of them."""
    make, options = CASES[case]
    problem = make()
    if options.fanout:  # draws are those of a share
        options = replace(options, fanout=())

    def first_step(processes: Processes):
        trainer = trainer_of(processes, problem, options, norms=False)
        batches = trainer._training_batches()
        loss = next(trainer._steps(batches, trainer._assign_to_batches(batches.num_items)))
        return float(processes.sum(loss)), [parameter.grad for parameter in trainer.model.parameters()]

    loss, gradients = first_step(SINGLE_PROCESS)
    for found, theirs in in_two(first_step, tmp_path):
        assert found == pytest.approx(loss, rel=1e-6)
        for mine, other in zip(gradients, theirs, strict=True):
            assert torch.allclose(torch.zeros_like(other) if mine is None else mine, other, atol=1e-6)


def test_a_process_without_a_share_does_not_count(tmp_path):
    """Batches of one query: the second process has none."""
    problem, options = large_problem("node-regression"), replace(ROOTS, query_batch_size=1, epochs=1)

    def run(processes: Processes):
        trainer = trainer_of(processes, problem, options, norms=False)
        (epoch,) = trainer.epochs()
        return replace(epoch, seconds=0), weights(trainer)

    epoch, expected = run(SINGLE_PROCESS)
    found = in_two(run, tmp_path)
    assert found[0][0] == found[1][0] and found[0][0].loss == pytest.approx(epoch.loss, rel=1e-5)
    assert_same_weights(found[0][1], found[1][1])
    for name, values in expected.items():
        assert torch.allclose(found[0][1][name], values, atol=1e-4)


class Stop(Callback):
    def epoch(self, epoch) -> None:
        if epoch.epoch == 2:
            raise KeyboardInterrupt


class Note(Callback):
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def epoch(self, epoch) -> None:
        self.calls += 1


def test_a_run_is_written_once_and_resumes_where_it_stopped(tmp_path, monkeypatch):
    graph, options = graph_for("node-classification"), replace(ROOTS, epochs=4, fanout=(4, 3))

    def run(processes: Processes, folder: str, **more):
        done = train(graph, "node-classification", model=SMALL, training=options, folder=tmp_path / folder, **more)
        return [replace(epoch, seconds=0) for epoch in done.epochs], done.model.state_dict()

    def whole(processes: Processes):
        note = Note()
        return *run(processes, "whole", callbacks=[note]), note.calls

    def stopped(processes: Processes):
        # Stopped between two epochs, as a machine stops: both processes at once.
        if not processes.first:
            monkeypatch.setattr(Trainer, "epochs", lambda self: iter([self.train_epoch(), self.train_epoch()]))
        with pytest.raises(KeyboardInterrupt if processes.first else Exception):
            run(processes, "stopped", callbacks=[Stop()])

    def resumed(processes: Processes):
        return run(processes, "stopped", resume=True)

    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (first, second), _ = in_two(whole, tmp_path / "a"), in_two(stopped, tmp_path / "b")
    shutil.copytree(tmp_path / "stopped", tmp_path / "alone")
    with pytest.warns(UserWarning, match=r"2 processes and continues with 1\. .* torchrun --nproc-per-node 2 -m idgnn"):
        run(SINGLE_PROCESS, "alone", resume=True)
    again = in_two(resumed, tmp_path / "c")
    assert first[2] == 4 and second[2] == 0, "the first process alone calls back"
    for epochs, state in (second[:2], *again):
        assert epochs == first[0]
        assert_same_weights(state, first[1])
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("whole", "stopped")]
    assert (
        files[0]
        == files[1]
        == [".lock", "metrics.jsonl", "model.json", "model.safetensors", "predictions.csv", "run.json"]
    )
    predictions = [(tmp_path / name / "predictions.csv").read_text() for name in ("whole", "stopped")]
    assert predictions[0] == predictions[1]
    assert len((tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()) == 4


def torchrun(*command: str) -> subprocess.CompletedProcess:
    root = Path(__file__).parents[2]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{root / 'src'}:{root}"}
    pipe = subprocess.PIPE
    process = subprocess.Popen([*TORCHRUN, *command], stdout=pipe, stderr=pipe, text=True, env=environment)
    try:
        out, error = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun ends its processes, which it could not if it were killed
        process.wait()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def test_torchrun_trains_from_the_command_line_and_leaves_one_folder(tmp_path):
    node = range(40)
    edges = "".join(f"{i},{(i + 1) % 40}\n{i},{(i * i) % 40}\n" for i in node)
    (tmp_path / "edges.csv").write_text("source,target\n" + edges)
    (tmp_path / "nodes.csv").write_text("id,size,club\n" + "".join(f"{i},{i % 7},{'ab'[i % 7 > 3]}\n" for i in node))
    arguments = f"--edges {tmp_path}/edges.csv --nodes {tmp_path}/nodes.csv --label club --runs {tmp_path}/runs"
    options = "--task node-classification --width 8 --epochs 2 --query-batch-size 9 --fanout 4 3 2 --device cpu"
    done = torchrun("-m", "idgnn", "train", *arguments.split(), *options.split())
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    result = json.loads((folder / "run.json").read_text())["result"]
    assert all(0 <= value <= 1 for value in result["last"]["valid"].values())
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2
    assert done.stdout.count("parameters, seed 0") == 1 and done.stdout.count("roc_auc counts") == 1
    assert "idgnn: note" not in done.stderr and "Warning" not in done.stderr


def test_a_mistake_of_the_user_is_one_sentence_in_all_processes(tmp_path):
    done = torchrun("-m", "idgnn", "train", "--edges", str(tmp_path / "none.csv"), "--task", "node-clustering")
    assert done.returncode != 0
    assert "there is no file" in done.stderr
    assert "rank1]: Traceback" not in done.stderr  # torchrun has one of its own


def test_an_error_in_one_process_ends_all(tmp_path):
    done = torchrun("-m", "tests.training.failing_rank", str(tmp_path / "run"))
    assert done.returncode != 0 and "this process has had enough" in done.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["result"] is None
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 1


def test_every_process_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert device_name("auto", Processes(5, 8)) == device_name("cuda", Processes(5, 8)) == "cuda:1"
    assert device_name("cpu", Processes(5, 8)) == "cpu" and device_name("auto", SINGLE_PROCESS) == "auto"
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(
        ValueError, match=r"process 2 on this machine has no GPU of its own: there are 2\. Start at most"
    ):
        device_name("auto", Processes(2, 8))


def test_recording_is_for_one_process():
    problem = problem_for("shortest-path")
    with pytest.raises(ValueError, match="cuda_graphs is for one process, but there are 2"):
        Trainer(network_for(problem), problem, replace(QUICK, cuda_graphs="on"), processes=Processes(0, 2))
