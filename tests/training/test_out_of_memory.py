"""When memory runs out batches are halved, and nothing else changes."""

from dataclasses import replace
from itertools import chain

import pytest
import torch

from idgnn.identity.cost import TooLargeError
from idgnn.training.batches import Batches
from idgnn.training.processes import is_out_of_memory
from idgnn.training.trainer import HalvedBatchWarning
from tests.training.small_problems import QUICK, assert_same_weights, problem_for, trainer_for, weights

FULL = (
    torch.OutOfMemoryError("CUDA out of memory"),
    TooLargeError("too large"),
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
)


def limit(trainer, most: int, error: Exception = FULL[0]) -> None:
    """Makes the network fail on more than `most` graphs, in training and in evaluation."""

    def check(_, inputs):
        if inputs[2] > most:
            raise error

    trainer.model.register_forward_pre_hook(check)


@pytest.mark.parametrize("error", FULL, ids=lambda error: type(error).__name__)
def test_every_kind_of_full_memory_is_recognized(error):
    assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("shapes do not fit")) and not is_out_of_memory(ValueError("no"))


@pytest.mark.parametrize("task", ["shortest-path", "link-prediction"])
@pytest.mark.parametrize("error", FULL, ids=lambda error: type(error).__name__)
def test_halved_batches_are_those_of_a_run_with_half_the_batch_size(task, error):
    problem = problem_for(task)
    full = trainer_for(problem, replace(QUICK, batch_size=8))
    limit(full, 4, error)
    half = trainer_for(problem, replace(QUICK, batch_size=4))
    with pytest.warns(HalvedBatchWarning, match="memory ran out in epoch 1: from here on batches have 4 graphs"):
        ours = list(full.epochs())
    theirs = list(half.epochs())
    assert [replace(epoch, seconds=0) for epoch in ours] == [replace(epoch, seconds=0) for epoch in theirs]
    assert {epoch.batch_size for epoch in ours} == {4}
    assert_same_weights(weights(full), weights(half))


@pytest.mark.filterwarnings("ignore::idgnn.training.trainer.HalvedBatchWarning")
def test_halved_as_often_as_needed_every_graph_is_trained_on_once(monkeypatch):
    problem = problem_for("graph-classification", 30)
    trainer = trainer_for(problem, replace(QUICK, batch_size=20, epochs=2))
    limit(trainer, 3)
    steps: list[list[int]] = []
    cut = Batches.cut

    def noted(self, graphs):
        if trainer.model.training and graphs.numel() <= 3:
            steps.append(graphs.tolist())
        return cut(self, graphs)

    monkeypatch.setattr(Batches, "cut", noted)
    for epoch in trainer.epochs():
        assert sorted(chain(*steps)) == list(range(problem.train.num_graphs))
        assert epoch.steps == len(steps) and epoch.batch_size == 3
        steps.clear()


def test_memory_that_runs_out_in_the_middle_of_an_epoch(monkeypatch):
    """The graphs that were trained on before are not trained on again."""
    trainer = trainer_for(problem_for("graph-classification", 30), replace(QUICK, batch_size=6, epochs=1))
    step, done, failed = trainer._step, [], []

    def fails_once(batch):
        if len(done) == 2 and not failed:
            failed.append(batch.num_graphs)
            raise FULL[0]
        done.append(batch.num_graphs)
        return step(batch)

    monkeypatch.setattr(trainer, "_step", fails_once)
    with pytest.warns(HalvedBatchWarning, match="batches have 3 graphs"):
        (epoch,) = trainer.epochs()
    assert failed == [6] and done[:2] == [6, 6] and max(done[2:]) == 3
    assert sum(done) == trainer.train.num_graphs and epoch.batch_size == 3 and epoch.steps == len(done)


def test_evaluation_halves_batches_too_and_predicts_the_same():
    problem = problem_for("shortest-path", 30)
    trainer = trainer_for(problem, replace(QUICK, batch_size=20))
    expected = trainer.predict("valid")
    limit(trainer, 2)
    found = trainer.predict("valid")
    assert torch.allclose(found.out, expected.out, atol=1e-5) and torch.equal(found.target, expected.target)


@pytest.mark.filterwarnings("ignore::idgnn.training.trainer.HalvedBatchWarning")
def test_one_graph_that_does_not_fit_is_an_error():
    trainer = trainer_for(problem_for("shortest-path"))
    limit(trainer, 0)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        list(trainer.epochs())
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        trainer.predict("valid")


def test_other_errors_are_not_taken_for_full_memory():
    trainer = trainer_for(problem_for("shortest-path"))
    limit(trainer, 0, RuntimeError("shapes do not fit"))
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        list(trainer.epochs())
    assert trainer.batch_size == QUICK.batch_size


@pytest.mark.filterwarnings("ignore::idgnn.training.trainer.HalvedBatchWarning")
def test_a_step_that_fails_on_its_way_back_leaves_no_trace_in_the_weights():
    """The running averages of BatchNorm include the batch by then; weights are unchanged."""
    problem = problem_for("shortest-path")
    full = trainer_for(problem, replace(QUICK, batch_size=8, epochs=1))

    def check(_, inputs, __):
        if inputs[2] > 4:
            raise FULL[0]

    full.model.register_forward_hook(check)
    half = trainer_for(problem, replace(QUICK, batch_size=4, epochs=1))
    list(full.epochs()), list(half.epochs())
    for mine, other in zip(full.model.parameters(), half.model.parameters(), strict=True):
        assert torch.equal(mine, other)
