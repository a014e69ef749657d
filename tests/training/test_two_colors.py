"""Networks of two colors are trained, saved and used as any other: batches of graphs, of roots, and wrapped models."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch_geometric.nn import GraphConv

from idgnn import identity_aware
from idgnn.identity.identity_graph import UnreachedColorWarning
from idgnn.models.settings import ModelSettings
from idgnn.training.run_settings import TrainOptions
from idgnn.training.train import train
from idgnn.training.trained import Run
from tests.training.small_problems import QUICK, SMALL, TASKS, graphs_for, settings_for
from tests.training.test_trained import asked

TWO = replace(SMALL, colors=2)


@pytest.mark.parametrize("task", TASKS)
def test_from_its_folder_a_run_predicts_the_same(task, tmp_path):
    run = train(graphs_for(task), settings_for(task), model=TWO, training=QUICK, folder=tmp_path)
    again, others = Run.load(tmp_path), graphs_for(task, 5, seed=9)
    assert again.model.encoder.config == run.model.encoder.config and again.model.encoder.colors == 2
    pairs = asked(run, others)
    expected = run.predict(others, pairs, device="cpu")
    assert again.predict(others, pairs, device="cpu") == expected
    (_, ours), (_, theirs) = (each.embed(others, pairs, device="cpu") for each in (run, again))
    assert torch.equal(ours, theirs)


def test_links_are_predicted_alike_in_both_directions():
    run = train(graphs_for("link-prediction"), settings_for("link-prediction"), model=TWO, training=QUICK)
    others = graphs_for("link-prediction", 3, seed=9)
    pairs = [torch.tensor([[0, 1, 2], [3, 4, 5]]) for _ in others]
    ahead, back = (run.predict(others, each, device="cpu") for each in (pairs, [pair.flip(0) for pair in pairs]))
    assert ahead["probability"] == pytest.approx(back["probability"], abs=1e-6)


@pytest.mark.parametrize("fanout", [(), (2, 2)])
def test_batches_of_roots_train_it(fanout):
    options = TrainOptions(epochs=2, query_batch_size=5, fanout=fanout, device="cpu")
    run = train(graphs_for("node-regression", 1), settings_for("node-regression"), model=TWO, training=options)
    assert all(torch.isfinite(weight).all() for weight in run.model.parameters())


def test_a_wrapped_model_of_two_colors_is_trained(tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = GraphConv(2, 8), GraphConv(8, 8)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index).relu()

    def made():
        torch.manual_seed(0)
        return identity_aware(Net(), colors=2, pool="mean")

    graphs, task = graphs_for("node-clustering"), settings_for("node-clustering")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreachedColorWarning)
        run = train(graphs, task, model=made(), training=QUICK, folder=tmp_path)
    again = Run.load(tmp_path, model=made())
    others = graphs_for("node-clustering", 3, seed=9)
    assert again.predict(others, device="cpu") == run.predict(others, device="cpu")


def test_settings_of_a_run_reach_the_network():
    settings = ModelSettings(colors=2, second="ball", radius=3, pool="max", with_self=True, width=8)
    made = settings.encoder("pair", 2, 8, None, directed=True)
    assert (made.colors, made.second, made.radius, made.pool, made.with_self) == (2, "ball", 3, "max", True)
    assert made.directed and not ModelSettings(width=8).encoder("pair", 2, 8, None, directed=True).directed
