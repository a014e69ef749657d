from dataclasses import replace

import pytest
import torch

from idgnn.experiments.peers.grouping import MOST_PAIRS, group
from idgnn.experiments.peers.peer import Peer
from idgnn.experiments.peers.run import BUILDERS, make_trainer, split_of
from idgnn.experiments.peers.settings import DATASETS, PEERS, PeerSettings, peer_settings
from idgnn.experiments.peers.training import FoldTrainer, train_folds
from idgnn.graphs.dataset import Dataset
from idgnn.graphs.load import load
from tests.experiments.peers.laws import CLASSES, small
from tests.experiments.peers.small_graphs import awkward

SIZES = torch.tensor([graph.num_nodes for graph in awkward()])
TARGET = torch.tensor([graph.num_nodes % 2 for graph in awkward()])
SPLITS = [
    {"train": torch.tensor([0, 1, 2, 3, 4, 5]), "valid": torch.tensor([6, 7, 8])},
    {"train": torch.tensor([3, 4, 5, 6, 7]), "valid": torch.tensor([0, 1, 2, 8])},
]


def trainer(settings: PeerSettings, splits=SPLITS) -> FoldTrainer:
    peer = BUILDERS[settings.network](settings, awkward(), CLASSES)
    return FoldTrainer(peer, settings, splits, SIZES, TARGET, "cpu")


@pytest.mark.parametrize("kind", ["by size", "shuffled"])
def test_every_graph_is_in_one_step_of_an_epoch(kind):
    parts = [split["train"] for split in SPLITS]
    steps = group(kind, parts, SIZES, 2, torch.Generator().manual_seed(0))
    assert all(ids.size(1) <= 2 for ids in steps)
    for fold, part in enumerate(parts):
        found = torch.cat([ids[fold] for ids in steps])
        assert sorted(found[found >= 0].tolist()) == sorted(part.tolist())


def test_drawn_steps_have_different_graphs_each():
    parts = [torch.arange(20), torch.arange(10, 30)]
    steps = group("drawn", parts, torch.ones(30), 8, torch.Generator().manual_seed(0), steps=5)
    assert len(steps) == 5
    for ids in steps:
        for fold, part in enumerate(parts):
            assert ids[fold].unique().numel() == 8 and set(ids[fold].tolist()) <= set(part.tolist())


def test_steps_by_size_pad_little_and_split_large_graphs():
    sizes = torch.cat([torch.arange(5, 25), torch.tensor([300, 310, 400])])
    steps = group("by size", [torch.arange(23)], sizes, 5, torch.Generator().manual_seed(0))
    for ids in steps:
        found = sizes[ids]
        assert found.numel() == 1 or found.numel() * int(found.max()) ** 2 <= MOST_PAIRS
        assert int(found.max() - found.min()) <= 4


@pytest.mark.parametrize("name", BUILDERS)
def test_a_run_repeats_and_says_everything_of_every_epoch(name):
    batches = "by size" if name in ("ppgn", "ign") else "shuffled"
    settings = small(name, batches=batches, dropout=0.5 if name.startswith("gsn") else 0.0)
    one, again = (train_folds(trainer(settings)) for _ in range(2))
    assert one["folds"] == again["folds"]
    for fold in one["folds"]:
        assert [row[0] for row in fold["curve"]] == [1, 2] and settings.epochs == 2
        assert fold["valid"]["accuracy"] == pytest.approx(fold["curve"][-1][2], abs=1e-4)
    assert one["num_parameters"] == train_folds(trainer(settings, SPLITS[:1]))["num_parameters"]


def test_folds_that_do_not_fit_together_are_run_one_after_another(monkeypatch):
    settings = small("ppgn", batches="by size", loss="sum")
    together = curves(settings)
    monkeypatch.setattr("idgnn.experiments.peers.training._TOGETHER", 1)
    torch.testing.assert_close(curves(settings), together, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", ["ccn-2d", "ppgn"])
def test_folds_that_are_computed_apart_are_trained_alike(name):
    settings = small(name, batches="by size" if name == "ppgn" else "shuffled")
    torch.testing.assert_close(curves(replace(settings, at_once=1)), curves(settings), atol=1e-3, rtol=1e-3)


def curves(settings):
    return torch.tensor([fold["curve"] for fold in train_folds(trainer(settings))["folds"]])


def test_products_in_bfloat16_are_close():
    settings = small("ppgn", batches="by size", loss="sum", epochs=1)
    exact, rounded = curves(settings), curves(replace(settings, precision="bf16"))
    assert not torch.equal(exact[..., 1], rounded[..., 1])
    torch.testing.assert_close(exact[..., 1], rounded[..., 1], atol=0.05, rtol=0.05)


def test_the_epoch_is_chosen_by_the_validation_part():
    split = {"train": torch.arange(5), "valid": torch.tensor([5, 6]), "test": torch.tensor([7, 8])}
    settings = small("gsn-v", validate=True, epochs=5)
    made = trainer(settings, [split])
    rows = [made.train_epoch() for _ in range(5)]
    lowest = min(range(5), key=lambda epoch: float(rows[epoch]["valid_loss"]))
    (fold,) = train_folds(trainer(settings, [split]))["folds"]
    assert fold["chosen"]["epoch"] == lowest + 1
    assert fold["chosen"]["accuracy"] == pytest.approx(float(rows[lowest]["test_accuracy"]))
    assert fold["valid"]["accuracy"] == pytest.approx(float(rows[-1]["test_accuracy"]))


def test_the_loss_is_summed_or_averaged_over_the_graphs_of_each_fold():
    peer = constant_peer()
    ids = torch.tensor([[0, 1, 2], [3, 4, -1]])
    for kind, expected in (("sum", [3.0, 2.0]), ("mean", [1.0, 1.0])):
        made = FoldTrainer(peer, small("ppgn", loss=kind), SPLITS, SIZES, TARGET, "cpu")
        found = made.step(ids) / torch.tensor(2.0).log()
        torch.testing.assert_close(found, torch.tensor(expected))


def constant_peer() -> Peer:
    """Says 0 for both classes: a loss of log 2 for each graph."""

    class Constant(torch.nn.Module):
        def __init__(self, copies):
            super().__init__()
            self.out = torch.nn.Parameter(torch.zeros(copies, 1, CLASSES))

        def forward(self, ids):
            return self.out.expand(-1, ids.size(1), -1)

    class Ids:
        def batch(self, ids):
            return ids

    return Peer(Constant, lambda device: Ids())


def test_the_learning_rate_falls_in_steps_down_to_its_floor():
    made = trainer(small("ign", epochs=6, decay=0.1, every=2, min_lr=0.0005, batches="by size"))
    rates = []
    for _ in range(6):
        made.train_epoch()
        rates.append(made.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.01, 0.01, 0.001, 0.001, 0.0005, 0.0005])


def test_the_learning_rate_of_a_fold_falls_when_its_validation_loss_does_not():
    """Each fold as PyTorch's ReduceLROnPlateau has it."""
    settings = small("gsn-v", schedule="plateau", validate=True, decay=0.5, every=2, min_lr=0.002)
    made = trainer(settings)
    losses = torch.tensor([[1.0, 1.0], [0.9, 1.1], [0.8, 1.2], [0.7, 1.3], [0.7, 0.9], [0.7, 0.9], [0.7, 2.0]] * 2)
    for fold in range(2):
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=settings.lr)
        theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2, min_lr=0.002)
        ours = trainer(settings)
        for row in losses:
            theirs.step(row[fold])
            ours._lower(row)
            assert float(ours.rate[fold]) * settings.lr == pytest.approx(optimizer.param_groups[0]["lr"])
    before = [weight.detach().clone() for weight in made.network.parameters()]
    made.rate = torch.tensor([1.0, 0.0])
    made.step(torch.tensor([[0, 1, 2], [3, 4, 5]]))
    for old, weight in zip(before, made.network.parameters(), strict=True):
        assert torch.equal(old[1], weight[1])
    assert any(
        not torch.equal(old[0], weight[0]) for old, weight in zip(before, made.network.parameters(), strict=True)
    )


def test_published_folds_are_held_out(data_dir):
    dataset = load("MUTAG-folds")
    target = torch.cat([graph.y for graph in dataset.graphs])
    settings = peer_settings("ppgn", "MUTAG-folds")
    for fold in range(10):
        found = split_of(dataset, target, fold, settings, 0)
        assert set(found["valid"].tolist()) == set(dataset.provided_folds[fold]["valid"].tolist())
        assert [len(part) for part in found.values()] == [170, 18]
        parts = split_of(dataset, target, fold, replace(settings, validate=True), 0)
        assert [len(parts[name]) for name in ("train", "valid", "test")] == [153, 17, 18]
        assert torch.cat(list(parts.values())).unique().numel() == 188


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_peer_has_settings_for_every_dataset(name, dataset):
    settings = peer_settings(name, dataset)
    assert (settings.network, settings.dataset) == (name, dataset)


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="no settings of ppgn for ENZYMES"):
        peer_settings("ppgn", "ENZYMES")
    with pytest.raises(ValueError, match="drawn batches need steps"):
        small("gsn-v", batches="drawn")
    with pytest.raises(ValueError, match="Set validate"):
        small("gsn-v", schedule="plateau")


def test_training_learns_to_classify():
    """Whether a graph has a triangle, which GSN reads off its counts."""
    graphs = [graph for graph in awkward() for _ in range(3)]
    has = torch.tensor([0, 0, 1, 0, 0, 0, 0, 1, 0]).repeat_interleave(3)
    dataset = Dataset("python", [graph.clone().update({"y": y.view(1)}) for graph, y in zip(graphs, has, strict=True)])
    settings = PeerSettings("gsn-v", "MUTAG-folds", 30, 8, 0.01, width=8, folds=1, pattern_size=3)
    result = train_folds(make_trainer(replace(settings, dataset="python"), dataset, "cpu"))
    curve = result["folds"][0]["curve"]
    assert curve[-1][1] < 0.1 < curve[0][1]
