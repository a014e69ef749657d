"""Batches of roots in a few fixed sizes: each is written over the one before, in tensors that stay where they are."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import torch
from torch import Tensor

from idgnn.identity.padded_cut import segment_sizes
from idgnn.identity.schedule import Schedule
from idgnn.models.prepared import PreparedGraphs
from idgnn.training.batches import GraphBatch
from idgnn.training.cuda_graphs import NotRecordedWarning
from idgnn.training.padded_batches import PaddedBatches, PaddedSize

# The batches of one graph differ more than those of many graphs, and preparing them takes longer than running them.
STEP = 1.25
_SPARE = 0.5  # the room that is left for larger batches
_MOST_RENEWALS = 8
_ONE = torch.zeros(1, dtype=torch.long)  # the batch is the only graph of its dataset


class PaddedRoots:
    """A dataset of one graph, what was prepared for a batch of roots, and written over for each batch.

    Args:
        device: Where the network is.
    """

    padded: PaddedBatches | None = None
    """The batch on the device."""
    renewed = False
    """Whether the last batch did not fit into the tensors of those before."""

    def __init__(self, device: torch.device) -> None:
        self.device, self._renewals = device, 0
        self._prepared: PreparedGraphs | None = None  # on the CPU
        self._target: Tensor | None = None
        self._profile = torch.zeros(0)

    def load(self, batch: GraphBatch) -> PaddedSize | None:
        """Writes a batch, which lies on the CPU, over the one before. `None`: it has to be run as it is."""
        plan, self.renewed = batch.ready.plan, False
        if self._renewals > _MOST_RENEWALS or not isinstance(plan, Schedule):
            return None
        if any(round_.blocks is not None for round_ in plan.rounds):  # made for a CPU
            return None
        owner = torch.zeros(batch.ready.x.size(0), dtype=torch.long)
        prepared = PreparedGraphs(batch.ready, owner, 1, self._prepared, _SPARE)
        self._target = prepared.with_room(batch.target, self._target)
        sizes = segment_sizes(prepared.cutter)
        # What was always missing has no room.
        self._prepared, self.renewed = prepared, not prepared.follows or self._lacks(sizes[0])
        if self.renewed:
            self._renew(prepared, sizes[0])
        assert self.padded is not None
        _copy(prepared, self._target, self.padded.whole, self.padded.target)
        self.padded.sizes = sizes
        self.padded.load(_ONE)
        return self.padded.size(_ONE)

    def _lacks(self, sizes: Tensor) -> bool:
        """Whether there is something in a segment that was empty when the sizes were chosen."""
        return bool(sizes[self._profile == 0].any())

    def _renew(self, prepared: PreparedGraphs, sizes: Tensor) -> None:
        self._renewals += 1
        if self._renewals > _MOST_RENEWALS:
            warnings.warn(
                f"training is slower than it could be: {_MOST_RENEWALS} times a batch of roots did not fit into the "
                "room of those before, so steps are not recorded (cuda_graphs) from here on. The results are the same.",
                NotRecordedWarning,
                stacklevel=2,
            )
        profile = torch.where(sizes > 0, sizes + 8.0, 0)
        self._profile = torch.maximum(profile, self._profile) if prepared.follows else profile
        whole = _on(prepared, self.device)
        target = None if self._target is None else self._target.to(self.device, copy=True)
        self.padded = PaddedBatches(whole, target, 1, profile=self._profile, step=STEP)


def _on(prepared: PreparedGraphs, device: torch.device) -> PreparedGraphs:
    """The same with tensors of its own, on a device."""
    made, cutter, store = copy.copy(prepared), copy.copy(prepared.cutter), prepared.store
    tensors = {name: value.to(device, copy=True) for name, value in vars(store).items() if isinstance(value, Tensor)}
    cutter.store, made.cutter = replace(store, **tensors), cutter
    for name in ("x", "weight", "edge_attr", "pair_x"):
        value = getattr(prepared, name)
        setattr(made, name, None if value is None else value.to(device, copy=True))
    return made


def _copy(source: PreparedGraphs, target: Tensor | None, to: PreparedGraphs, to_target: Tensor | None) -> None:
    """Copies what differs from batch to batch: a few long tensors."""
    pairs = [(getattr(source, name), getattr(to, name)) for name in ("x", "weight", "edge_attr", "pair_x")]
    pairs += [(target, to_target)]
    pairs += [(getattr(source.store, name), getattr(to.store, name)) for name in ("pool", "runs")]
    for given, kept in pairs:
        if given is not None:
            kept.copy_(given, non_blocking=True)
