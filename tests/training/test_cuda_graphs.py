"""Steps that are replayed as CUDA graphs train as eager steps do."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch

from idgnn.training.cuda_graphs import CudaGraphCache
from tests.training.small_problems import QUICK, problem_for, trainer_for

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
REPLAYED = replace(QUICK, device="cuda", epochs=6, reshuffle_every=3, cuda_graphs=True)


def losses(trainer: Trainer) -> list[float]:
    return [epoch.loss for epoch in trainer.epochs()]


@on_a_gpu
@pytest.mark.parametrize("task", ["node-clustering", "shortest-path", "graph-clustering", "link-prediction"])
def test_replayed_steps_train_as_steps_do(task):
    problem = problem_for(task)
    captured, plain = (trainer_for(problem, replace(REPLAYED, cuda_graphs=recorded)) for recorded in (True, False))
    assert losses(captured) == pytest.approx(losses(plain), rel=1e-4)


@on_a_gpu
def test_compiled_steps_are_replayed_too():
    problem, compiled = problem_for("node-clustering"), replace(REPLAYED, compile=True)
    captured, plain = (trainer_for(problem, replace(compiled, cuda_graphs=recorded)) for recorded in (True, False))
    assert losses(captured) == pytest.approx(losses(plain), rel=1e-4)


@on_a_gpu
def test_cuda_graphs_among_the_garbage_do_not_disturb_a_capture():
    cache, x = CudaGraphCache(), torch.ones(3, device="cuda")
    for _ in range(10):
        cycle: list = [CudaGraphCache()]
        cycle.append(cycle)  # which only the collector frees

    def littering(times):
        litter = [[] for _ in range(1000)]  # the collector counts what was made
        return x * times + len(litter)

    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for times in (1, 2, 3):  # the first one warms up
            assert cache.run(times, lambda times=times: times, littering).tolist() == [1000 + times] * 3
    finally:
        gc.set_threshold(*thresholds)


@on_a_gpu
def test_an_error_during_capture_is_raised_and_the_next_capture_works():
    cache, x = CudaGraphCache(), torch.ones(3, device="cuda")

    def large(fails):
        y = x * 2
        if fails:
            raise torch.OutOfMemoryError("no more")
        return y

    cache.run("warm", lambda: False, large)
    with pytest.raises(torch.OutOfMemoryError, match="no more"):
        cache.run("large", lambda: True, large)
    for _ in range(2):
        assert cache.run("small", lambda: False, large).tolist() == [2, 2, 2]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_a_gpu)])
def test_captured_graphs_are_freed_with_their_trainer(device):
    options = replace(QUICK, device=device, reshuffle_every=3, cuda_graphs=device != "cpu", eval_every=3)
    trainer = trainer_for(problem_for("node-clustering"), options)
    trainer.graph_cache = trainer.graph_cache or FakeCache()
    gc.disable()  # it would free cycles too, but any time later
    try:
        trainer.train_epoch()
        trainer.train_epoch()
        cache = weakref.ref(trainer.graph_cache)
        del trainer
        assert cache() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("times", [2, 3])
def test_graphs_are_assigned_to_new_batches_every_few_epochs(times):
    trainer = trainer_for(
        problem_for("shortest-path"), replace(QUICK, device="cpu", reshuffle_every=times, epochs=2 * times)
    )
    assigned = []
    for _ in range(2 * times):
        assigned.append({frozenset(batch.tolist()) for batch in trainer._assign_to_batches(trainer.train.num_graphs)})
        trainer.epoch += 1
    assert all(each == assigned[0] for each in assigned[:times])
    assert all(each == assigned[times] for each in assigned[times:])
    assert assigned[0] != assigned[times]
    assert all(set().union(*each) == set(range(trainer.train.num_graphs)) for each in assigned)


class FakeCache:
    """Stands in for the cache on a CPU: keeps the inputs of each key, and runs the function on them again."""

    def __init__(self) -> None:
        self.kept: dict = {}

    def run(self, key, make, function):
        if key not in self.kept:
            self.kept[key] = make()
        return function(self.kept[key])

    def clear(self) -> None:
        self.kept.clear()


def test_captured_steps_of_larger_batches_are_dropped_when_batches_are_halved(monkeypatch):
    trainer = trainer_for(problem_for("node-clustering"), replace(QUICK, reshuffle_every=50, batch_size=4, epochs=9))
    trainer.graph_cache = FakeCache()
    trained, memory, step = [], [4, 4, 2], trainer._step

    def limited(batch):
        if batch.num_graphs > memory[trainer.epoch]:
            raise torch.OutOfMemoryError("no more")
        trained.append(batch.num_graphs)
        return step(batch)

    monkeypatch.setattr(trainer, "_step", limited)
    trainer.train_epoch()
    trainer.train_epoch()
    trained.clear()
    with pytest.warns(HalvedBatchWarning):
        trainer.train_epoch()
    memory.append(4)  # the old batches would fit again
    trained.clear()
    trainer.train_epoch()
    assert trained == [2] * (trainer.train.num_graphs // 2)
