"""Training by batches of nodes or pairs in place of graphs: the same loop, and the same answers."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from idgnn.experiments.spec import TrainJob, key_of
from idgnn.graphs.dataset import Dataset
from idgnn.identity.cost import TooLargeError
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import Problem, make_problem
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.callbacks import Callback
from idgnn.training.preparing import Preparer
from idgnn.training.run_folder import RunFolder
from idgnn.training.run_settings import RunSettings, TrainOptions
from idgnn.training.train import train
from idgnn.training.trainer import HalvedBatchWarning
from tests.training.small_problems import SMALL, assert_same_weights, problem_for, trainer_for, weights

# Newer versions of Python warn of what pytest-xdist makes of every process.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

TASKS = ("node-classification", "node-regression", "link-prediction", "pair-classification")
ROOTS = TrainOptions(epochs=3, query_batch_size=16, device="cpu")


def graph_for(task: str, size: int = 60) -> Data:
    """A ring with chords; what is asked can be told from the features. For links, cliques that are joined to a ring."""
    generator = torch.Generator().manual_seed(0)
    node = torch.arange(size)
    edges = torch.stack([node, (node + 1) % size])
    chords = torch.randint(size, (2, size), generator=generator)
    if task == "link-prediction":
        chords = (node.view(-1, 1) // 6 == node // 6).nonzero().t()
    edges = torch.cat([edges, chords[:, chords[0] != chords[1]]], dim=1)
    data = Data(x=torch.randn(size, 2, generator=generator), edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    if task == "node-classification":
        data.y = (data.x[:, 0] > 0).long()
    elif task == "node-regression":
        data.y = 10 + 5 * data.x[:, 0]
    elif task == "pair-classification":
        data.edge_label_index = torch.randint(size, (2, 3 * size), generator=generator)
        data.edge_label = (data.x[data.edge_label_index[0], 0] > 0).long()
    return data


def large_problem(task: str) -> Problem:
    settings = TaskSettings(name=task, valid=0.25, test=0.1)  # type: ignore[arg-type]
    return make_problem(Dataset("python", [graph_for(task)]), settings)


def without_time(epochs) -> list:
    return [replace(epoch, seconds=0) for epoch in epochs]


@pytest.mark.parametrize("options", [ROOTS, replace(ROOTS, fanout=(4, 3))], ids=["exact", "capped"])
@pytest.mark.parametrize("task", TASKS)
def test_the_loss_goes_down(task, options):
    trainer = trainer_for(large_problem(task), replace(options, epochs=15), replace(SMALL, width=16))
    epochs = list(trainer.epochs())
    assert epochs[-1].loss < (0.97 if task == "link-prediction" else 0.8) * epochs[0].loss
    assert set(epochs[-1].metrics) == {"valid", "test"} and epochs[0].steps > 1


@pytest.mark.parametrize("identity", ["none", "fast", "full"])
@pytest.mark.parametrize("task", TASKS)
def test_held_out_parts_are_answered_as_on_the_whole_graph(task, identity):
    """Whatever caps there are in training."""
    problem, model = large_problem(task), replace(SMALL, identity=identity)
    whole = trainer_for(problem, replace(ROOTS, query_batch_size=None), model)
    roots = trainer_for(problem, replace(ROOTS, fanout=(2, 1)), model)
    for name in ("valid", "test"):
        ours, theirs = roots.predict(name), whole.predict(name)
        assert torch.allclose(ours.out, theirs.out, atol=1e-5)
        assert torch.equal(ours.target, theirs.target) and torch.equal(ours.graph, theirs.graph)


@pytest.mark.parametrize("task", ["node-clustering", "node-regression", "link-prediction", "shortest-path"])
def test_several_graphs_are_trained_on_by_queries_too(task):
    problem = problem_for(task)
    whole, roots = (trainer_for(problem, replace(ROOTS, query_batch_size=each)) for each in (None, 16))
    assert roots.evaluate()["valid"] == pytest.approx(whole.evaluate()["valid"], rel=1e-4, nan_ok=True)
    assert next(roots.epochs()).steps > next(whole.epochs()).steps == 1


@pytest.mark.parametrize("task", TASKS)
def test_one_batch_of_all_queries_is_the_whole_graph(task):
    """ID-GNN-Full computes the same rows, so the statistics of BatchNorm, the loss and its gradients are the same."""
    problem = large_problem(task)
    whole, roots = (trainer_for(problem, replace(ROOTS, query_batch_size=each, epochs=1)) for each in (None, 10_000))
    (one,), (other,) = whole.epochs(), roots.epochs()
    assert one.steps == other.steps == 1 and other.loss == pytest.approx(one.loss, rel=1e-5)
    for mine, its in zip(whole.model.parameters(), roots.model.parameters(), strict=True):
        # In link prediction no two nodes of a pair are joined: the last round has no colored message.
        assert (mine.grad is None) == (its.grad is None)
        assert mine.grad is None or torch.allclose(mine.grad, its.grad, atol=1e-5)


@pytest.mark.parametrize("task", ["node-classification", "link-prediction"])
def test_the_number_of_workers_changes_nothing(task):
    problem, runs = large_problem(task), []
    for workers in (0, 2):
        trainer = trainer_for(problem, replace(ROOTS, fanout=(4, 3), workers=workers, epochs=2))
        runs.append((without_time(trainer.epochs()), weights(trainer)))
    assert runs[0][0] == runs[1][0]
    assert_same_weights(runs[0][1], runs[1][1])


def test_parts_of_one_graph_are_prepared_from_one():
    trainer = trainer_for(large_problem("node-classification"), ROOTS)
    list(trainer.epochs())
    assert len(trainer.source._held) == 1
    trainer = trainer_for(large_problem("link-prediction"), ROOTS)
    list(trainer.epochs())
    assert len(trainer.source._held) == 2, "what is held out is asked about a graph with more edges"


class Stop(Callback):
    def epoch(self, epoch) -> None:
        if epoch.epoch == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("task", ["node-classification", "link-prediction"])
def test_a_run_repeats_and_resumes_bit_for_bit(task, tmp_path):
    graph, options = graph_for(task), replace(ROOTS, fanout=[4, 3], epochs=4)  # a list will do

    def run(folder: str, **more):
        return train(graph, task, model=SMALL, training=options, folder=tmp_path / folder, **more)

    whole, again = run("whole"), run("again")
    with pytest.raises(KeyboardInterrupt):
        run("stopped", callbacks=[Stop()])
    resumed = run("stopped", resume=True)
    for other in (again, resumed):
        assert without_time(whole.epochs) == without_time(other.epochs)
        assert_same_weights(whole.model.state_dict(), other.model.state_dict())
    files = [(tmp_path / name / "predictions.csv").read_text() for name in ("whole", "again", "stopped")]
    assert files[0] == files[1] == files[2]


def fail_above(monkeypatch, most: int) -> None:
    """No memory for more than so many queries at once."""
    each = Preparer.each

    def limited(self, orders, device="cpu"):
        for order, ready in zip(orders, each(self, orders, device), strict=True):
            if order.queries.shape[-1] > most:
                raise TooLargeError("too large")
            yield ready

    monkeypatch.setattr(Preparer, "each", limited)


def test_batches_are_halved_when_memory_runs_out(monkeypatch):
    problem = large_problem("link-prediction")
    half = trainer_for(problem, replace(ROOTS, query_batch_size=8))
    theirs = list(half.epochs())
    fail_above(monkeypatch, 8)
    full = trainer_for(problem, replace(ROOTS, query_batch_size=16))
    with pytest.warns(HalvedBatchWarning, match="memory ran out in epoch 1: from here on batches have 8 queries"):
        ours = list(full.epochs())
    assert without_time(ours) == without_time(theirs) and ours[0].batch_size == 8
    assert_same_weights(weights(full), weights(half))


def test_one_query_that_does_not_fit_is_an_error(monkeypatch):
    fail_above(monkeypatch, 0)
    with pytest.warns(HalvedBatchWarning), pytest.raises(TooLargeError):
        list(trainer_for(large_problem("node-classification"), ROOTS).epochs())


def test_graphs_are_not_asked_about_by_queries():
    with pytest.raises(
        ValueError, match=r"query_batch_size is 16, .* but the task asks about whole graphs. Leave it out"
    ):
        trainer_for(problem_for("graph-classification"), ROOTS)


def test_caps_have_to_fit_the_network():
    with pytest.raises(ValueError, match=r"fanout is \[5, 5, 5\], but the network has 2 rounds"):
        trainer_for(large_problem("node-classification"), replace(ROOTS, fanout=(5, 5, 5)))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"query_batch_size": 0}, "query_batch_size is 0, expected a whole number of at least 1"),
        ({"query_batch_size": 4, "workers": -1}, "workers is -1, expected a whole number of at least 0"),
        (
            {"query_batch_size": 4, "fanout": (3, 0)},
            r"fanout is \[3, 0\], expected whole numbers of at least 1, or -1 for all",
        ),
        ({"fanout": (3, 2)}, "fanout is for batches of nodes or pairs. Set query_batch_size"),
        ({"workers": 2}, "workers is for batches of nodes or pairs"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        TrainOptions(**options)


def job(**options) -> TrainJob:
    return TrainJob(
        RunSettings("Cora", TaskSettings(name="node-classification"), ModelSettings(), TrainOptions(**options))
    )


def test_keys_of_experiments_depend_on_what_changes_results():
    assert key_of(job(query_batch_size=None, fanout=(), workers=0)) == key_of(job())
    assert key_of(job(query_batch_size=64, workers=3)) == key_of(job(query_batch_size=64))
    assert (
        len({key_of(each) for each in (job(), job(query_batch_size=64), job(query_batch_size=64, fanout=(5, 5, 5)))})
        == 3
    )


def test_a_run_folder_keeps_the_options(tmp_path: Path):
    options = replace(ROOTS, fanout=(4, 3), epochs=1)
    train(graph_for("node-regression"), "node-regression", model=SMALL, training=options, folder=tmp_path / "run")
    assert RunFolder(tmp_path / "run").settings().training == options
