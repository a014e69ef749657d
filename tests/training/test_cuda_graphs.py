"""Steps that are replayed as CUDA graphs train as eager steps do."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch

from idgnn.training.cuda_graphs import CudaGraphCache, make_adam_state
from tests.training.fake_cache import recorded
from tests.training.small_problems import QUICK, problem_for, trainer_for

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


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
    trainer = trainer_for(problem_for("node-clustering"), replace(QUICK, device=device, eval_every=3))
    trainer = recorded(trainer) if device == "cpu" else trainer
    gc.disable()  # it would free cycles too, but any time later
    try:
        trainer.train_epoch()
        trainer.train_epoch()
        cache = weakref.ref(trainer.recorder.cache)
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


def test_the_state_of_adam_is_the_one_it_would_make_itself():
    layers = [torch.nn.Linear(3, 2) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    optimizers = [torch.optim.Adam(layer.parameters(), weight_decay=0.1, fused=True) for layer in layers]
    make_adam_state(optimizers[0])
    for _ in range(3):
        for layer, optimizer in zip(layers, optimizers, strict=True):
            optimizer.zero_grad()
            layer(torch.ones(4, 3)).square().sum().backward()
            optimizer.step()
            if optimizer is optimizers[0]:
                make_adam_state(optimizer)  # what is there stays
    ours, theirs = (optimizer.state_dict()["state"] for optimizer in optimizers)
    assert ours.keys() == theirs.keys()
    for number, slots in theirs.items():
        assert slots.keys() == ours[number].keys()
        assert all(torch.equal(ours[number][name], value) for name, value in slots.items())
        assert all(ours[number][name].dtype == value.dtype for name, value in slots.items())
