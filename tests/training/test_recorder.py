"""Steps that are replayed on padded batches train as steps do, whatever the batches."""

import warnings
from dataclasses import replace

import pytest
import torch

from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import Problem
from idgnn.tasks.query_set import QuerySet
from idgnn.training.batches import Batches
from idgnn.training.cuda_graphs import NotRecordedWarning
from idgnn.training.precision import tf32_products
from idgnn.training.processes import Processes
from idgnn.training.recorder import is_recorded
from idgnn.training.run_settings import TrainOptions
from idgnn.training.trainer import HalvedBatchWarning, Trainer
from tests.training.fake_cache import FakeCache, recorded
from tests.training.small_problems import QUICK, SMALL, network_for, problem_for, trainer_for, weights

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=on_a_gpu)]
LEVELS = ("node-clustering", "shortest-path", "graph-clustering", "link-prediction")


def in_float64(problem: Problem) -> Problem:
    """So that rounding, which Adam can make as large as a step, does not matter."""

    def wide(part: QuerySet) -> QuerySet:
        return replace(part, x=part.x.double())

    return replace(
        problem, train=wide(problem.train), held_out={name: wide(part) for name, part in problem.held_out.items()}
    )


def pair_of_trainers(problem: Problem, options: TrainOptions, device: str, model: ModelSettings) -> list[Trainer]:
    """One that replays, and one that does not."""
    options, trainers = replace(options, device=device), []
    for way in ("auto", "off"):
        network = network_for(problem, model).to(problem.train.x.dtype)
        trainers.append(Trainer(network, problem, replace(options, cuda_graphs=way)))
    if device == "cpu":
        recorded(trainers[0])
    assert trainers[0].recorder is not None and trainers[1].recorder is None
    return trainers


def assert_same_curves(replayed: Trainer, plain: Trainer, tolerance: float) -> None:
    """The losses of all epochs, the weights, the statistics of BatchNorm, and the predictions."""
    ours, theirs = ([epoch.loss for epoch in trainer.epochs()] for trainer in (replayed, plain))
    assert ours == pytest.approx(theirs, rel=tolerance)
    values = {**weights(plain), "out": plain.predict("valid").out}
    for name, value in {**weights(replayed), "out": replayed.predict("valid").out}.items():
        scale = max(1.0, float(values[name].double().abs().max()))
        assert float((value.double() - values[name].double()).abs().max()) <= 10 * tolerance * scale, name


# Losses are computed in float32; that of two classes in another order of summation.
TOLERANCE = {"link-prediction": 1e-6}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("identity", ["none", "fast", "full"])
@pytest.mark.parametrize("task", LEVELS)
def test_a_training_has_the_same_curve(task, identity, device):
    """Graphs are shuffled in each epoch, and links have new queries."""
    problem, model = in_float64(problem_for(task)), replace(SMALL, identity=identity)
    options = replace(QUICK, epochs=6, batch_size=5, keep="best")
    replayed, plain = pair_of_trainers(problem, options, device, model)
    assert_same_curves(replayed, plain, TOLERANCE.get(task, 1e-7 if device == "cpu" else 1e-6))


@pytest.mark.parametrize("device", DEVICES)
def test_epochs_with_fixed_statistics_are_replayed_too(device):
    problem = in_float64(problem_for("node-clustering"))
    options = replace(QUICK, epochs=6, batch_size=5, freeze_batchnorm=0.5)
    replayed, plain = pair_of_trainers(problem, options, device, SMALL)
    assert_same_curves(replayed, plain, 1e-7 if device == "cpu" else 1e-6)


@pytest.mark.parametrize("task", LEVELS)
def test_no_batch_is_run_as_it_is(task, monkeypatch):
    """All steps, statistics and predictions are replayed, and few sizes serve all of them."""
    trainer = recorded(trainer_for(problem_for(task), replace(QUICK, epochs=12)))
    monkeypatch.setattr(Batches, "cut", None)
    list(trainer.epochs())
    assert trainer.recorder is not None and isinstance(trainer.recorder.cache, FakeCache)
    assert trainer.recorder.cache.calls == 12 * (3 + 3 + 1)
    assert len(trainer.recorder.cache.kept) <= 24
    if task == "link-prediction":  # new queries in each epoch, in the tensors of the first
        assert len(trainer.recorder._padded) == 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("conv", ["gcn", "gin"])
@pytest.mark.parametrize("fanout", [(), (3, 2)])
@pytest.mark.parametrize("task", ["node-clustering", "link-prediction"])
def test_batches_of_roots_have_the_same_curve(task, fanout, conv, device):
    problem, model = in_float64(problem_for(task, 24)), replace(SMALL, identity="full", conv=conv)
    options = replace(QUICK, epochs=4, query_batch_size=20, fanout=fanout)
    replayed, plain = pair_of_trainers(problem, options, device, model)
    assert_same_curves(replayed, plain, 1e-6)
    if device == "cpu":
        cache = replayed.recorder.cache
        assert cache.calls > 50, "most batches are recorded"
        assert len(cache.kept) <= 16


@on_a_gpu
def test_compiled_steps_are_replayed_too():
    options = replace(QUICK, epochs=6, compile=True)
    replayed, plain = pair_of_trainers(in_float64(problem_for("node-clustering")), options, "cuda", SMALL)
    assert_same_curves(replayed, plain, 1e-6)


@on_a_gpu
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_coarser_products_are_replayed_too(precision):
    options = replace(QUICK, epochs=6, precision=precision)
    replayed, plain = pair_of_trainers(problem_for("node-clustering"), options, "cuda", SMALL)
    assert [each.loss for each in replayed.epochs()] == pytest.approx([each.loss for each in plain.epochs()], rel=3e-2)


@on_a_gpu
def test_tf32_products_are_coarser_and_only_inside():
    x = torch.rand(512, 512, device="cuda")

    def error() -> float:
        return float((x @ x - x.double() @ x.double()).abs().max() / 512)

    exact = error()
    with tf32_products():
        coarse = error()
    assert exact == error() < 1e-6 < 1e-5 < coarse < 1e-3


def test_recordings_of_larger_batches_are_dropped_when_batches_are_halved(monkeypatch):
    trainer = recorded(trainer_for(problem_for("node-clustering"), replace(QUICK, batch_size=4, epochs=9)))
    trained, memory, step = [], [4, 4, 2, 4], trainer._step

    def limited(batch):
        if batch.num_graphs - 1 > memory[trainer.epoch]:
            raise torch.OutOfMemoryError("no more")
        trained.append(batch.num_graphs - 1)
        return step(batch)

    monkeypatch.setattr(trainer, "_step", limited)
    trainer.train_epoch()
    trainer.train_epoch()
    with pytest.warns(HalvedBatchWarning):
        trainer.train_epoch()
    trained.clear()
    trainer.train_epoch()  # the old batches would fit again
    assert trained == [2] * (trainer.train.num_graphs // 2)


def test_networks_that_do_not_know_padding_have_a_recording_for_each_batch():
    problem, options = problem_for("node-clustering"), replace(QUICK, epochs=6, reshuffle_every=3)
    replayed, plain = pair_of_trainers(problem, options, "cpu", SMALL)
    replayed.recorder.padding = False
    assert [each.loss for each in replayed.epochs()] == [each.loss for each in plain.epochs()]
    assert len(replayed.recorder.cache.kept) == 3, "those of the last three epochs"


def test_graphs_that_cannot_be_prepared_together_are_trained_as_they_are():
    problem = in_float64(problem_for("node-clustering"))
    replayed, plain = pair_of_trainers(problem, QUICK, "cpu", SMALL)
    for trainer in (replayed, plain):
        trainer._training_batches().whole = None
    with pytest.warns(NotRecordedWarning, match="for graphs that fit into memory together") as said:
        assert_same_curves(replayed, plain, 1e-9)
    assert len(said) == 1


def reason(options: TrainOptions, device: str = "cuda", processes: int = 1, model=None) -> str:
    """What is said if steps are not recorded."""
    model = network_for(problem_for("node-clustering")) if model is None else model
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert is_recorded(options, model, Processes(0, processes), torch.device(device)) == (not said)
    assert all(issubclass(each.category, NotRecordedWarning) for each in said)
    return str(said[0].message) if said else ""


def test_where_steps_cannot_be_recorded_a_sentence_says_so():
    class Other(torch.nn.Module):
        encoder = None

    automatic, asked = TrainOptions(), TrainOptions(cuda_graphs="on")
    assert reason(automatic) == ""
    assert "for one process, but there are 2. The results are the same" in reason(automatic, processes=2)
    assert "for networks that know padding, which Other does not" in reason(automatic, model=Other())
    assert reason(TrainOptions(reshuffle_every=5), model=Other()) == ""
    with pytest.raises(ValueError, match=r"cuda_graphs is for CUDA, but the device is cpu\. Leave it out"):
        reason(asked, "cpu")
    with pytest.raises(ValueError, match="cuda_graphs is for one process, but there are 2"):
        reason(asked, processes=2)
    cpu = torch.device("cpu")
    assert not is_recorded(automatic, None, Processes(), cpu), "on a CPU there is nothing to say"
    assert not is_recorded(TrainOptions(cuda_graphs="off"), None, Processes(0, 2), torch.device("cuda"))
