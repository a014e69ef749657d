"""Steps that are replayed on padded batches train as steps do, whatever the batches."""

import warnings
from dataclasses import replace

import pytest
import torch

from idgnn.models.settings import ModelSettings
from idgnn.training.batches import Batches
from idgnn.training.processes import Processes
from idgnn.training.recorder import NotRecordedWarning, is_recorded
from idgnn.training.run_settings import TrainOptions
from idgnn.training.trainer import HalvedBatchWarning, Trainer
from tests.training.fake_cache import FakeCache, recorded
from tests.training.small_problems import QUICK, SMALL, network_for, problem_for, trainer_for, weights

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=on_a_gpu)]
LEVELS = ("node-clustering", "shortest-path", "graph-clustering", "link-prediction")


def pair_of_trainers(problem, options: TrainOptions, device: str, model: ModelSettings = SMALL) -> list[Trainer]:
    """One that replays, and one that does not."""
    options = replace(options, device=device)
    trainers = [trainer_for(problem, replace(options, cuda_graphs=each), model) for each in ("auto", "off")]
    if device == "cpu":
        recorded(trainers[0])
    assert trainers[0].recorder is not None and trainers[1].recorder is None
    return trainers


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("identity", ["none", "fast", "full"])
@pytest.mark.parametrize("task", LEVELS)
def test_a_training_has_the_same_curve(task, identity, device):
    problem, model = problem_for(task), replace(SMALL, identity=identity)
    replayed, plain = pair_of_trainers(problem, replace(QUICK, epochs=6, batch_size=5, keep="best"), device, model)
    ours, theirs = (list(trainer.epochs()) for trainer in (replayed, plain))
    assert [epoch.loss for epoch in ours] == pytest.approx([epoch.loss for epoch in theirs], rel=2e-5)
    assert torch.allclose(replayed.predict("valid").out, plain.predict("valid").out, rtol=1e-3, atol=1e-4)
    for name, value in weights(plain).items():
        assert torch.allclose(weights(replayed)[name].double(), value.double(), rtol=1e-3, atol=1e-4), name


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


@on_a_gpu
def test_compiled_steps_are_replayed_too():
    options = replace(QUICK, epochs=6, compile=True)
    replayed, plain = pair_of_trainers(problem_for("node-clustering"), options, "cuda")
    assert [each.loss for each in replayed.epochs()] == pytest.approx([each.loss for each in plain.epochs()], rel=1e-4)


@on_a_gpu
def test_half_precision_is_replayed_too():
    options = replace(QUICK, epochs=6, precision="bf16")
    replayed, plain = pair_of_trainers(problem_for("node-clustering"), options, "cuda")
    assert [each.loss for each in replayed.epochs()] == pytest.approx([each.loss for each in plain.epochs()], rel=3e-2)


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
    replayed, plain = pair_of_trainers(problem, options, "cpu")
    replayed.recorder.padding = False
    assert [each.loss for each in replayed.epochs()] == [each.loss for each in plain.epochs()]
    assert len(replayed.recorder.cache.kept) == 3, "those of the last three epochs"


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
