"""Trains a peer on all folds of a dataset: what a job of Table 6 does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.experiments.peers.ccn import build_ccn
from idgnn.experiments.peers.gsn import build_gsn
from idgnn.experiments.peers.ign import build_ign
from idgnn.experiments.peers.k_gnn import build_k_gnn
from idgnn.experiments.peers.peer import Peer
from idgnn.experiments.peers.ppgn import build_ppgn
from idgnn.experiments.peers.settings import PeerName, PeerSettings
from idgnn.experiments.peers.training import FoldTrainer, train_folds
from idgnn.graphs.dataset import Dataset
from idgnn.graphs.load import load
from idgnn.tasks.labeled_queries import split_ids
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.precision import tf32_products
from idgnn.training.seeds import generator_of

BUILDERS: dict[PeerName, Callable[[PeerSettings, Sequence[Data], int], Peer]] = {
    "ppgn": build_ppgn,
    "ign": build_ign,
    "1-2-3-gnn": build_k_gnn,
    "gsn-v": build_gsn,
    "gsn-e": build_gsn,
    "ccn-1d": build_ccn,
    "ccn-2d": build_ccn,
}


def run_peer(settings: PeerSettings, device: torch.device | str, seed: int = 0) -> dict[str, Any]:
    """The result of training all folds, as :func:`idgnn.experiments.peers.training.train_folds` describes it.

    On CUDA matrix products are computed in TF32: PPGN is nothing else.
    """
    with tf32_products():
        return train_folds(make_trainer(settings, load(settings.dataset), device, seed))


def make_trainer(settings: PeerSettings, dataset: Dataset, device: torch.device | str, seed: int = 0) -> FoldTrainer:
    """The networks of all folds, ready to train on a dataset."""
    graphs = dataset.graphs
    sizes = torch.tensor([int(graph.num_nodes or 0) for graph in graphs])
    target = torch.cat([graph["y"] for graph in graphs])
    peer = BUILDERS[settings.network](settings, graphs, int(target.max()) + 1)
    splits = [split_of(dataset, target, fold, settings, seed) for fold in range(settings.folds)]
    return FoldTrainer(peer, settings, splits, sizes, target, device, seed)


def split_of(dataset: Dataset, target: Tensor, fold: int, settings: PeerSettings, seed: int) -> dict[str, Tensor]:
    """The graphs of a fold: `"train"` and `"valid"`; if the epoch is chosen, the held-out fold is `"test"`, and a tenth
    of the others is `"valid"`."""
    task = TaskSettings("graph-classification", split="folds", fold=fold)
    ids = split_ids(dataset, task, seed, list(range(len(dataset))), target)
    train, held_out = torch.tensor(ids["train"]), torch.tensor(ids["valid"])
    if not settings.validate:
        return {"train": train, "valid": held_out}
    order = train[torch.randperm(len(train), generator=generator_of(seed, "validation", fold))]
    number = round(len(order) / 10)
    return {"train": order[number:], "valid": order[:number], "test": held_out}
