"""The training loop: it learns, repeats bit for bit, and reports divergence."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

from idgnn.models.settings import ModelSettings
from idgnn.training.batches import Batches
from idgnn.training.precision import check_precision
from idgnn.training.run_settings import TrainOptions
from idgnn.training.trainer import DivergedError, Trainer
from tests.training.small_problems import (
    QUICK,
    SMALL,
    TASKS,
    assert_same_weights,
    network_for,
    problem_for,
    trainer_for,
    weights,
)


def without_time(epochs) -> list:
    return [replace(epoch, seconds=0) for epoch in epochs]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("task", TASKS)
def test_the_loss_goes_down_and_the_metric_gets_better(task):
    problem = problem_for(task)
    trainer = trainer_for(problem, replace(QUICK, epochs=25), replace(SMALL, width=16))
    before = trainer.predict("valid")
    epochs = list(trainer.epochs())
    assert [epoch.epoch for epoch in epochs] == list(range(1, 26))
    # Edges of random graphs cannot be told from other pairs by much.
    assert epochs[-1].loss < (0.97 if task == "link-prediction" else 0.8) * epochs[0].loss
    if task not in ("link-prediction", "graph-classification"):  # held-out graphs that are predictable
        metric = problem.objective.metric
        first = problem.objective.measure(before.out, before.target, before.graph)[metric]
        last = epochs[-1].metrics["valid"][metric]
        assert (last > first) == problem.objective.higher_is_better and last != first


@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin"])
def test_a_run_repeats_bit_for_bit_on_two_threads(conv, two_threads):
    problem = problem_for("shortest-path", 32)
    model = ModelSettings(conv=conv, identity="full", width=64, layers=3)
    runs = []
    for _ in range(2):
        torch.manual_seed(len(runs))  # what was drawn before must not matter
        trainer = trainer_for(problem, replace(QUICK, epochs=1, batch_size=16), model)
        runs.append((without_time(trainer.epochs()), weights(trainer), trainer.predict("valid").out))
    assert runs[0][0] == runs[1][0]
    assert_same_weights(runs[0][1], runs[1][1])
    assert torch.equal(runs[0][2], runs[1][2])


@pytest.mark.parametrize("task", TASKS)
def test_the_seed_is_all_that_is_random(task):
    problem = problem_for(task)
    runs = []
    for seed, noise in ((0, 1), (0, 2), (1, 1)):
        trainer = Trainer(network_for(problem), problem, QUICK, seed)
        torch.manual_seed(noise)
        list(trainer.epochs())
        runs.append(weights(trainer))
    assert_same_weights(runs[0], runs[1])
    assert any(not torch.equal(runs[0][name], runs[2][name]) for name in runs[0])


def test_graphs_are_reshuffled_every_few_epochs(monkeypatch):
    problem = problem_for("graph-classification", 24)
    trainer = trainer_for(problem, replace(QUICK, epochs=6, reshuffle_every=3))
    cut, seen = Batches.cut, []

    def noted(self, graphs):
        if trainer.model.training:
            seen.append(tuple(graphs.tolist()))
        return cut(self, graphs)

    monkeypatch.setattr(Batches, "cut", noted)
    epochs = []
    for _ in trainer.epochs():
        epochs.append(list(seen))
        seen.clear()
    for epoch in epochs:
        assert sorted(chain(*epoch)) == list(range(problem.train.num_graphs))
    assigned = [set(epoch) for epoch in epochs]
    assert assigned[0] == assigned[1] == assigned[2] != assigned[3] == assigned[4] == assigned[5]
    assert len({tuple(epoch) for epoch in epochs[:3]}) > 1, "the batches come in another order"


def test_recording_needs_a_gpu():
    with pytest.raises(ValueError, match=r"cuda_graphs is for CUDA, but the device is cpu"):
        trainer_for(problem_for("graph-classification"), replace(QUICK, cuda_graphs="on"))


def test_the_cosine_is_that_of_pytorch():
    trainer = trainer_for(problem_for("graph-classification"), replace(QUICK, epochs=7, lr=0.03))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.03)
    schedule = CosineAnnealingLR(optimizer, T_max=7)
    for epoch in trainer.epochs():
        assert math.isclose(epoch.lr, schedule.get_last_lr()[0], rel_tol=1e-9)
        assert all(group["lr"] == epoch.lr for group in trainer.optimizer.param_groups)
        optimizer.step()
        schedule.step()
    assert abs(schedule.get_last_lr()[0]) < 1e-12, "the rate would be 0 after the last epoch"


def test_a_constant_rate_stays():
    trainer = trainer_for(problem_for("graph-classification"), replace(QUICK, schedule="constant", lr=0.02))
    assert {epoch.lr for epoch in trainer.epochs()} == {0.02}


def test_one_epoch_by_hand():
    """One batch of all graphs: a step of Adam with L2 penalty on the mean loss."""
    problem = problem_for("node-clustering")
    options = replace(QUICK, epochs=1, batch_size=100, weight_decay=0.1)
    trainer = trainer_for(problem, options)
    model = network_for(problem)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, weight_decay=0.1)
    (epoch,) = trainer.epochs()
    part = problem.train
    out = model(model.encoder.prepare(part.x, part.edge_index), part.owner, part.num_graphs)
    loss = problem.objective.loss(out, part.target)
    loss.backward()
    optimizer.step()
    assert math.isclose(epoch.loss, float(loss.detach()), rel_tol=1e-5) and epoch.steps == 1
    for mine, other in zip(trainer.model.parameters(), model.parameters(), strict=True):
        assert torch.allclose(mine, other, atol=1e-5)


@pytest.mark.parametrize("task", ["graph-classification", "node-regression"])
def test_the_best_epoch_is_kept(task):
    problem = problem_for(task)
    trainer = trainer_for(problem, replace(QUICK, epochs=8, lr=0.1, schedule="constant", keep="best"))
    seen, scores = [], []
    for epoch in trainer.epochs():
        seen.append(weights(trainer))
        value = epoch.metrics["valid"][problem.objective.metric]
        scores.append(value if problem.objective.higher_is_better else -value)
    best = scores.index(max(scores))  # of several equal ones the first
    assert trainer.best_epoch == best + 1 and trainer.best_score == max(scores)
    trainer.finish()
    assert_same_weights(weights(trainer), seen[best])


def test_the_last_epoch_is_kept_by_default():
    trainer = trainer_for(problem_for("node-regression"), replace(QUICK, epochs=4))
    list(trainer.epochs())
    last = weights(trainer)
    trainer.finish()
    assert_same_weights(weights(trainer), last)
    assert trainer.best_epoch > 0 and not trainer.best_weights


def test_held_out_parts_are_evaluated_when_due_and_at_the_end():
    trainer = trainer_for(problem_for("node-clustering"), replace(QUICK, epochs=7, eval_every=3))
    assert [epoch.epoch for epoch in trainer.epochs() if epoch.metrics] == [3, 6, 7]


def test_looking_at_held_out_parts_changes_nothing():
    problem = problem_for("link-prediction")
    one, other = (trainer_for(problem, replace(QUICK, epochs=4, eval_every=every)) for every in (1, 4))
    list(one.epochs()), list(other.epochs())
    assert_same_weights(weights(one), weights(other))
    assert one.model.training


def test_diverged_training_is_stopped():
    problem = problem_for("node-regression")
    trainer = trainer_for(problem, replace(QUICK, epochs=50, lr=1e30, schedule="constant"))
    with pytest.raises(
        DivergedError, match=r"the loss of epoch \d+ is (nan|inf). Try a lower learning rate than 1e\+30"
    ):
        list(trainer.epochs())


def test_bfloat16_runs_and_learns():
    problem = problem_for("shortest-path")
    options = replace(QUICK, epochs=15, precision="bf16")
    trainer = trainer_for(problem, options, replace(SMALL, width=16))
    epochs = list(trainer.epochs())
    assert epochs[-1].loss < 0.8 * epochs[0].loss
    assert all(parameter.dtype == torch.float32 for parameter in trainer.model.parameters())
    full = trainer_for(problem, replace(options, precision="float32"), replace(SMALL, width=16))
    difference = abs(next(full.epochs()).loss - epochs[0].loss)
    assert 0 < difference < 0.1, "products of matrices are rounded to bfloat16, no more"


def test_tf32_is_refused_without_a_gpu_that_has_it(monkeypatch):
    problem, options = problem_for("shortest-path"), replace(QUICK, device="cpu", precision="tf32")
    with pytest.raises(ValueError, match="precision is 'tf32', a format of NVIDIA GPUs, but the device is cpu"):
        trainer_for(problem, options)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    with pytest.raises(ValueError, match=r"from compute capability 8.0 on, but cuda:0 has 7.5. Leave it out"):
        check_precision("tf32", torch.device("cuda:0"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    check_precision("tf32", torch.device("cuda:0"))


def test_tf32_holds_in_forward_and_backward_passes_and_not_behind_them(monkeypatch):
    """On a CPU, where it changes nothing, by what PyTorch is told to do at each product."""
    monkeypatch.setattr("idgnn.training.trainer.check_precision", lambda precision, device: None)
    trainer = trainer_for(problem_for("node-clustering"), replace(QUICK, epochs=1, precision="tf32"))
    seen = {"forward": set(), "backward": set()}

    def look(module, inputs, out):
        seen["forward"].add(torch.get_float32_matmul_precision())
        if out.requires_grad:
            out.register_hook(lambda grad: seen["backward"].add(torch.get_float32_matmul_precision()))

    trainer.model.encoder.lin_in.register_forward_hook(look)
    trainer.train_epoch()
    assert seen == {"forward": {"high"}, "backward": {"high"}}
    assert torch.get_float32_matmul_precision() == "highest"


def test_compiled_it_is_the_same_network(monkeypatch):
    """With a backend that runs what was captured, without generating code for it, which takes a minute."""
    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model, dynamic: compile_(model, dynamic=dynamic, backend="eager"))
    torch._dynamo.reset()
    problem = problem_for("shortest-path")
    runs = []
    for compiled in (False, True):
        trainer = trainer_for(problem, replace(QUICK, epochs=1, compile=compiled))
        assert (trainer.network is trainer.model) != compiled
        runs.append(list(trainer.epochs()))
    for plain, other in zip(*runs, strict=True):
        assert math.isclose(plain.loss, other.loss, rel_tol=1e-3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"epochs": 0}, "epochs is 0, expected a whole number of at least 1"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"eval_every": 0}, "eval_every is 0"),
        ({"lr": 0.0}, "lr is 0.0, expected a learning rate above 0"),
        ({"lr": math.nan}, "lr is nan"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"reshuffle_every": 0}, "reshuffle_every is 0"),
        pytest.param({"schedule": "linear"}, "schedule is 'linear'"),
        pytest.param({"keep": "first"}, "keep is 'first'"),
        pytest.param({"precision": "fp8"}, "precision is 'fp8'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        TrainOptions(**options)


@pytest.mark.parametrize("device", ["cuda:77", "gpu", "coffee machine", "meta"])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(ValueError, match=f"device {device!r} cannot be used here .* Use cpu, or auto"):
        trainer_for(problem_for("graph-classification"), replace(QUICK, device=device))


def test_a_device_without_64_bit_numbers_is_refused():
    with pytest.raises(ValueError, match=r"device 'mps' cannot be used here \(it has no 64-bit numbers"):
        trainer_for(problem_for("graph-classification"), replace(QUICK, device="mps"))


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_batchnorm_is_reestimated_before_each_evaluation(conv):
    """Against a computation by hand: the mean over the batches. Training itself is unchanged."""
    problem, model = problem_for("node-clustering"), replace(SMALL, conv=conv)
    options = replace(QUICK, lr=0.05, epochs=2, reestimate_batchnorm=True)
    reestimated, running = (
        trainer_for(problem, each, model) for each in (options, replace(options, reestimate_batchnorm=False))
    )
    epochs = [list(trainer.epochs()) for trainer in (reestimated, running)]
    assert [epoch.loss for epoch in epochs[0]] == [epoch.loss for epoch in epochs[1]]

    encoder = reestimated.model.encoder
    seen = []
    handle = encoder.norms[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].mean(0)))
    batches = reestimated._training_batches()
    kept = encoder.norms[0].module.running_mean.clone()
    reestimated.model.train()
    with torch.no_grad():
        for batch in batches.each(torch.arange(batches.num_items).split(QUICK.batch_size)):
            reestimated.model(batch.ready, batch.graph, batch.num_graphs)
    handle.remove()
    torch.testing.assert_close(kept, torch.stack(seen).mean(0))
    assert not torch.allclose(kept, running.model.encoder.norms[0].module.running_mean, atol=1e-3)
    assert encoder.norms[0].module.momentum == 0.1


def test_statistics_of_batchnorm_are_fixed_in_the_last_epochs():
    """The mean over the batches after the last epoch in which they are not; weights change in all."""
    problem = problem_for("node-clustering")
    trainer = trainer_for(problem, replace(QUICK, epochs=5, freeze_batchnorm=0.4, eval_every=5))
    without = trainer_for(problem, replace(QUICK, epochs=5, eval_every=5))
    for _ in range(3):
        assert trainer.train_epoch().loss == without.train_epoch().loss
    norm, weight = trainer.model.encoder.norms[1].module, trainer.model.encoder.lin_in.weight
    kept, before = {name: value.clone() for name, value in norm.named_buffers()}, weight.clone()
    seen = []
    handle = norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].mean(0)))
    batches = trainer._training_batches()
    trainer.model.eval()
    trainer.model.encoder.norms.train()
    with torch.no_grad():
        for batch in batches.each(torch.arange(batches.num_items).split(QUICK.batch_size)):
            trainer.model(batch.ready, batch.graph, batch.num_graphs)
    handle.remove()
    torch.testing.assert_close(kept["running_mean"], torch.stack(seen).mean(0))
    norm.load_state_dict(kept, strict=False)
    for _ in range(2):
        trainer.train_epoch()
    assert all(torch.equal(value, kept[name]) for name, value in norm.named_buffers())
    assert not torch.equal(weight, before)


def test_too_few_epochs_to_fix_statistics_in_one_are_warned_of():
    problem = problem_for("node-clustering")
    with pytest.warns(
        UserWarning, match=r"freeze_batchnorm is 0.4, but 2 epochs have no .*Train for at least 3 epochs"
    ):
        assert not trainer_for(problem, replace(QUICK, epochs=2, freeze_batchnorm=0.4, eval_every=2))._frozen
    trainer = trainer_for(problem, replace(QUICK, epochs=3, freeze_batchnorm=0.4, eval_every=3))  # warnings are errors
    trainer.epoch = 2
    assert trainer._frozen


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan"), "half"])
def test_a_share_of_epochs_with_fixed_statistics_is_below_1(share):
    with pytest.raises(ValueError, match="freeze_batchnorm is"):
        TrainOptions(freeze_batchnorm=share)


@pytest.mark.parametrize("query_batch_size", [None, 16])
def test_batches_are_prepared_once_while_the_queries_stay_the_same(query_batch_size):
    trainer = trainer_for(problem_for("node-clustering"), replace(QUICK, query_batch_size=query_batch_size))
    trainer.train_epoch()
    first = trainer.batches
    trainer.train_epoch()
    assert trainer.batches is first


def test_negatives_are_drawn_in_each_epoch():
    trainer = trainer_for(problem_for("link-prediction"))
    trainer.train_epoch()
    first = trainer.batches
    trainer.train_epoch()
    assert trainer.batches is not first
    assert not torch.equal(trainer.batches.part.queries, first.part.queries)


@pytest.mark.parametrize("task", TASKS)
def test_predictions_come_with_the_target_and_the_graph_of_each_query(task):
    problem = problem_for(task)
    part = problem.held_out["valid"]
    found = trainer_for(problem).predict("valid")
    if part.level == "graph":
        graph = list(range(part.num_graphs))
    else:
        nodes = range(part.x.size(0)) if part.queries is None else part.queries.view(-1, part.target.numel())[0]
        graph = [int(part.owner[node]) for node in nodes]
    assert found.graph.tolist() == graph
    assert torch.equal(found.target, part.target) and found.out.size(0) == part.target.numel()
