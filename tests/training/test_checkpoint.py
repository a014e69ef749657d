"""A run that was stopped after any epoch and resumed gives the same result."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from idgnn.training.checkpoint import load_checkpoint, save_checkpoint
from idgnn.training.trainer import HalvedBatchWarning
from tests.training.small_problems import QUICK, SMALL, TASKS, assert_same_weights, problem_for, trainer_for, weights


@pytest.mark.parametrize("keep", ["best", "last"])
@pytest.mark.parametrize("task", TASKS)
def test_a_resumed_run_repeats_bit_for_bit(task, keep, tmp_path):
    problem, options = problem_for(task), replace(QUICK, epochs=5, keep=keep, reshuffle_every=2)
    whole = trainer_for(problem, options)
    expected = [replace(epoch, seconds=0) for epoch in whole.epochs()]
    for stop in (1, 3, 5):
        first = trainer_for(problem, options)
        found = [first.train_epoch() for _ in range(stop)]
        save_checkpoint(first, tmp_path / "checkpoint")
        second = trainer_for(problem, options, seed=0)
        torch.nn.init.normal_(second.model.encoder.lin_in.weight)  # all of it comes from the file
        load_checkpoint(second, tmp_path / "checkpoint")
        found += second.epochs()
        assert [replace(epoch, seconds=0) for epoch in found] == expected
        assert_same_weights(weights(second), weights(whole))
        assert (second.best_epoch, second.best_score) == (whole.best_epoch, whole.best_score)
        assert_same_weights(second.best_weights, whole.best_weights)
    whole.finish(), second.finish()
    assert_same_weights(weights(second), weights(whole))


def test_the_size_of_batches_is_remembered(tmp_path):
    problem = problem_for("shortest-path")
    first = trainer_for(problem, replace(QUICK, batch_size=8))
    hook = first.model.register_forward_pre_hook(lambda _, inputs: fail() if inputs[2] > 4 else None)

    def fail():
        raise torch.OutOfMemoryError("full")

    with pytest.warns(HalvedBatchWarning):
        first.train_epoch()
    hook.remove()
    save_checkpoint(first, tmp_path / "checkpoint")
    second = trainer_for(problem, replace(QUICK, batch_size=8))
    load_checkpoint(second, tmp_path / "checkpoint")
    assert second.train_epoch().batch_size == 4


def test_before_the_first_epoch_there_is_a_checkpoint_too(tmp_path):
    trainer = trainer_for(problem_for("shortest-path"))
    save_checkpoint(trainer, tmp_path / "checkpoint")
    other = trainer_for(problem_for("shortest-path"), seed=3)
    load_checkpoint(other, tmp_path / "checkpoint")
    assert_same_weights(weights(other), weights(trainer))
    assert other.epoch == 0 and other.best_score == -torch.inf


def saved(trainer, path) -> bytes:
    save_checkpoint(trainer, path)
    return path.read_bytes()


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    trainer, path = trainer_for(problem_for("shortest-path")), tmp_path / "checkpoint"
    content = saved(trainer, path)
    another_bit = content[:-1] + bytes([content[-1] ^ 1])
    for wrong in (b"", b"no checkpoint at all", content[: len(content) // 2], content[:-1], another_bit):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"is not a checkpoint of a run .* Start the run again"):
            load_checkpoint(trainer, path)
    for metadata in (None, {"other": "{}"}, {"progress": "no json"}):
        save_file({"model/x": torch.zeros(1)}, path, metadata)
        with pytest.raises(ValueError, match="is not a checkpoint of a run"):
            load_checkpoint(trainer, path)


def test_the_checkpoint_of_another_network_is_refused(tmp_path):
    problem = problem_for("shortest-path")
    save_checkpoint(trainer_for(problem, model=replace(SMALL, width=4)), tmp_path / "checkpoint")
    with pytest.raises(ValueError, match="is a checkpoint of another network"):
        load_checkpoint(trainer_for(problem), tmp_path / "checkpoint")
