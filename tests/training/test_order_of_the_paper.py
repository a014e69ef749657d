"""Shown to work: on scale-free graphs the three networks come in the order of the paper's Table 2.

Small graphs, small networks of equal numbers of parameters, short training; so the numbers are not those of the paper,
but the distances between plain GCN, ID-GNN-Fast and ID-GNN-Full are as wide. The differences that are asserted are the
mean of those that were measured with eight seeds, less three standard deviations of what is averaged here.
"""

from dataclasses import dataclass
from statistics import mean

import pytest
from torch_geometric.data import Data

from idgnn.graphs.synthetic import scale_free
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import TrainOptions
from idgnn.training.train import train


@dataclass(frozen=True)
class Comparison:
    """A task, how it is learnt, and by how much the identity-aware networks have to be ahead."""

    task: TaskSettings
    num_graphs: int
    layers: int
    epochs: int
    seeds: int
    full: float
    fast: float | None


# Measured with eight seeds, mean (standard deviation) of the accuracy, and of the difference from the plain GCN:
#
#                      plain          fast           full           fast - plain    full - plain
#   node-clustering    0.633 (0.017)  0.844 (0.012)  0.937 (0.009)   0.212 (0.022)  0.305 (0.014)
#   shortest-path      0.515 (0.019)  0.491 (0.017)  0.885 (0.004)  -0.024 (0.033)  0.370 (0.020)
#   graph-clustering   0.426 (0.032)  0.770 (0.041)  0.848 (0.054)   0.344 (0.053)  0.422 (0.060)
#
# Less three standard deviations of the mean over the seeds that are run here: 0.174 and 0.281; 0.328; 0.230 and 0.295.
COMPARISONS = {
    "node-clustering": Comparison(
        TaskSettings(name="node-clustering", valid=0.4),
        num_graphs=64,
        layers=3,
        epochs=16,
        seeds=3,
        full=0.28,
        fast=0.17,
    ),
    # The counts of ID-GNN-Fast are those of one node, and say nothing about where the other is.
    "shortest-path": Comparison(
        TaskSettings(name="shortest-path", valid=0.4, pairs=100),
        num_graphs=64,
        layers=4,
        epochs=12,
        seeds=2,
        full=0.32,
        fast=None,
    ),
    "graph-clustering": Comparison(
        TaskSettings(name="graph-clustering", valid=0.4, bins=4),
        num_graphs=160,
        layers=3,
        epochs=20,
        seeds=2,
        full=0.29,
        fast=0.23,
    ),
}


def accuracy(graphs: list[Data], chosen: Comparison, identity: str, seed: int) -> float:
    """On graphs that were held out. Many small batches, as BatchNorm has to keep up with a short training."""
    training = TrainOptions(epochs=chosen.epochs, batch_size=4, eval_every=chosen.epochs, device="cpu")
    model = ModelSettings(conv="gcn", identity=identity, layers=chosen.layers, budget=32)
    run = train(graphs[: chosen.num_graphs], chosen.task, model=model, training=training, seed=seed)
    return run.result["last"]["valid"]["accuracy"]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory) -> list[Data]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDGNN_CACHE", str(tmp_path_factory.mktemp("cache")))
        return scale_free(num_graphs=160, num_nodes=32, seed=0)


@pytest.mark.parametrize("name", COMPARISONS)
def test_identity_puts_a_network_ahead_by_far(name, graphs):
    chosen = COMPARISONS[name]

    def average(identity: str) -> float:
        return mean(accuracy(graphs, chosen, identity, seed) for seed in range(chosen.seeds))

    plain, full = average("none"), average("full")
    assert full - plain > chosen.full, f"plain {plain:.3f}, full {full:.3f}"
    if chosen.fast is not None:
        fast = average("fast")
        assert fast - plain > chosen.fast, f"plain {plain:.3f}, fast {fast:.3f}"
