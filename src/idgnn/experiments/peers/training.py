"""Trains all folds of a peer side by side, with the optimizer and the learning rates of its authors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idgnn.experiments.peers.grouping import MOST_PAIRS, group
from idgnn.experiments.peers.peer import GraphStore, Peer
from idgnn.experiments.peers.settings import PeerSettings
from idgnn.models.budget import num_parameters
from idgnn.training.seeds import generator_of, seed_of

_TOGETHER = 4 * MOST_PAIRS  # pairs of nodes of a dense batch over all folds: PPGN needs 50 kB for each
_EVALUATED = 64  # graphs of a fold at once


class FoldTrainer:
    """The networks of all folds, and one optimizer: Adam treats every weight by itself, so they do not interact.

    Args:
        peer: Network and graphs.
        settings: How it is trained.
        splits: The ids of the graphs of each fold: `"train"`, `"valid"`, and with `validate` `"test"`.
        sizes: The number of nodes of each graph.
        target: The class of each graph.
        device: Where.
        seed: Determines weights, order and dropout.
    """

    def __init__(
        self,
        peer: Peer,
        settings: PeerSettings,
        splits: Sequence[Mapping[str, Tensor]],
        sizes: Tensor,
        target: Tensor,
        device: torch.device | str,
        seed: int = 0,
    ) -> None:
        self.settings, self.splits, self.sizes, self.seed = settings, splits, sizes, seed
        self.device = torch.device(device)
        torch.manual_seed(seed_of(seed, "weights"))
        self.network = peer.network(len(splits)).to(self.device)
        self.store: GraphStore = peer.store(self.device)
        self.target = torch.cat([target, target.new_zeros(1)]).to(self.device)  # the last is that of no graph, id -1
        fused = self.device.type in ("cpu", "cuda")
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.lr, fused=fused)
        folds = len(splits)
        self.rate = torch.ones(folds, device=self.device)  # of each fold, times the learning rate
        self.lowest = torch.full((folds,), torch.inf, device=self.device)
        self.waited = torch.zeros(folds, device=self.device)
        self.epoch = 0

    def train_epoch(self) -> dict[str, Tensor]:
        """One epoch and an evaluation; for each fold `[folds]` the loss, and accuracy and loss of the held-out parts.

        Nothing in it waits for a GPU.
        """
        settings, parts = self.settings, [split["train"] for split in self.splits]
        if settings.schedule == "step":
            lr = max(settings.lr * settings.decay ** (self.epoch // settings.every), settings.min_lr)
            self.optimizer.param_groups[0]["lr"] = lr
        torch.manual_seed(seed_of(self.seed, "network", self.epoch))
        order = generator_of(self.seed, "order", self.epoch)
        self.network.train()
        total = torch.zeros(len(parts), device=self.device)
        steps = group(settings.batches, parts, self.sizes, settings.batch_size, order, settings.steps)
        for ids in steps:
            total += self.step(ids)
        self.epoch += 1
        found = {"loss": total / len(steps)}
        for part in self.splits[0]:
            if part != "train":
                loss, accuracy = self.evaluate(part)
                found |= {f"{part}_loss": loss, f"{part}_accuracy": accuracy}
        if settings.schedule == "plateau":
            self._lower(found["valid_loss"])
        return found

    def step(self, ids: Tensor) -> Tensor:
        """One step on the graphs `[folds, graphs]`; the loss of each fold."""
        weight = (ids >= 0).to(self.device, non_blocking=True).float()
        if self.settings.loss == "mean":
            weight = weight / weight.sum(1, keepdim=True).clamp(min=1)
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for some in self._together(ids):
            losses.append((self._losses(self._run(some, ids), ids[some]) * weight[some]).sum(1))
            losses[-1].sum().backward()
        self._update()
        return torch.cat(losses).detach()

    @torch.no_grad()
    def evaluate(self, part: str) -> tuple[Tensor, Tensor]:
        """The mean loss and the accuracy of each fold on a part `[folds]`."""
        self.network.eval()
        parts = [split[part] for split in self.splits]
        kind = "by size" if self.settings.batches == "by size" else "shuffled"
        loss, correct, number = (torch.zeros(len(parts), device=self.device) for _ in range(3))
        for ids in group(kind, parts, self.sizes, _EVALUATED, torch.Generator().manual_seed(0)):
            real = (ids >= 0).to(self.device, non_blocking=True)
            out = torch.cat([self._run(some, ids) for some in self._together(ids)])
            loss += (self._losses(out, ids) * real).sum(1)
            correct += ((out.argmax(-1) == self._targets(ids)) & real).sum(1)
            number += real.sum(1)
        return loss / number, correct / number

    def _together(self, ids: Tensor) -> list[slice]:
        """The folds that are run at once: fewer where dense batches of large graphs would fill the memory."""
        folds, number = ids.size(0), self.settings.at_once
        if self.settings.batches == "by size":
            most = ids.size(1) * int(torch.where(ids < 0, 0, self.sizes[ids]).max()) ** 2
            number = min(number, max(_TOGETHER // max(most, 1), 1))
        return [slice(first, min(first + number, folds)) for first in range(0, folds, number)]

    def _run(self, folds: slice, ids: Tensor) -> Tensor:
        """The outputs of some folds `[folds, graphs, num_classes]`."""
        batch = self.store.batch(ids[folds])
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16"):
            if folds == slice(0, ids.size(0)):
                return self.network(batch).float()
            weights = {name: weight[folds] for name, weight in self.network.named_parameters()}
            return torch.func.functional_call(self.network, weights, (batch,)).float()

    def _targets(self, ids: Tensor) -> Tensor:
        return self.target[ids.to(self.device, non_blocking=True)]

    def _losses(self, out: Tensor, ids: Tensor) -> Tensor:
        return cross_entropy(out.flatten(0, 1), self._targets(ids).flatten(), reduction="none").view_as(ids)

    def _update(self) -> None:
        """A step of Adam; a fold whose learning rate is lower takes that share of it."""
        if self.settings.schedule == "step":
            self.optimizer.step()
            return
        before = [weight.detach().clone() for weight in self.network.parameters()]
        self.optimizer.step()
        with torch.no_grad():
            for weight, old in zip(self.network.parameters(), before, strict=True):
                weight.copy_(torch.lerp(old, weight, self.rate.view(-1, *[1] * (weight.dim() - 1))))

    def _lower(self, loss: Tensor) -> None:
        """Lowers the learning rate of the folds whose validation loss has not improved for `every` epochs."""
        better = loss < self.lowest * (1 - 1e-4)  # the threshold of PyTorch's ReduceLROnPlateau
        self.lowest = torch.where(better, loss, self.lowest)
        self.waited = torch.where(better, 0, self.waited + 1)
        lower = self.waited > self.settings.every
        least = self.settings.min_lr / self.settings.lr
        self.rate = torch.where(lower, (self.rate * self.settings.decay).clamp(min=least), self.rate)
        self.waited = torch.where(lower, 0, self.waited)


def train_folds(trainer: FoldTrainer) -> dict[str, Any]:
    """Trains to the last epoch. The result has, for all folds together, the parameters of a network, the seconds of an
    epoch and the memory of the GPU; and in `"folds"` what a run on one fold has:

    `"valid"`: the accuracy on the held-out fold at the last epoch; `"curve"`: `[epoch, loss, accuracy]` of every epoch;
    with a validation part, `"chosen"`: the epoch of its lowest loss, that loss and the accuracy there.
    """
    cuda, settings = trainer.device.type == "cuda", trainer.settings
    if cuda:
        torch.cuda.reset_peak_memory_stats(trainer.device)
    accuracy = "test_accuracy" if settings.validate else "valid_accuracy"
    names = ["loss", accuracy, *(["valid_loss"] if settings.validate else [])]
    rows, seconds = list[list[list[float]]](), list[float]()  # [epochs, folds, names]
    for _ in range(settings.epochs):
        start = time.perf_counter()
        found = trainer.train_epoch()
        rows.append(torch.stack([found[name] for name in names], dim=1).tolist())
        seconds.append(time.perf_counter() - start)
    return {
        "folds": [_fold_result([epoch[fold] for epoch in rows]) for fold in range(len(trainer.splits))],
        "metric": "accuracy",
        "num_parameters": num_parameters(trainer.network) // len(trainer.splits),
        "width": settings.width,
        "seconds_per_epoch": float(f"{median(seconds):.4g}"),
        "folds_at_once": len(trainer.splits),
        "device": str(trainer.device),
        **({"gpu_memory": torch.cuda.max_memory_reserved(trainer.device)} if cuda else {}),
    }


def _fold_result(rows: list[list[float]]) -> dict[str, Any]:
    """The result of one fold from `[loss, accuracy]`, and maybe the loss of a validation part, of every epoch."""
    best = max(range(len(rows)), key=lambda epoch: rows[epoch][1])
    made: dict[str, Any] = {
        "valid": {"accuracy": rows[-1][1]},
        "best": {"epoch": best + 1, "valid": {"accuracy": rows[best][1]}},
        "curve": [[epoch, *(float(f"{value:.5g}") for value in row[:2])] for epoch, row in enumerate(rows, start=1)],
    }
    if len(rows[0]) > 2:
        lowest = min(range(len(rows)), key=lambda epoch: rows[epoch][2])
        made["chosen"] = {"epoch": lowest + 1, "loss": rows[lowest][2], "accuracy": rows[lowest][1]}
    return made
