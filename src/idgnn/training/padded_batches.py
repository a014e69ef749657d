"""Batches in a few fixed sizes, so that one recorded step serves every batch of a size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from idgnn.identity.padded_cut import PaddedCutter, segment_sizes
from idgnn.layers.aggregation.dispatch import kernels_on
from idgnn.models.prepared import PreparedGraphs
from idgnn.training.batches import GraphBatch

# Sizes grow by this factor from level to level: half of it is what padding costs on average.
STEP = 1.05
_DEVIATIONS = 2  # by which a profile is above the mean of random batches
_MARGIN = 8  # and by so many positions more, for what is rare
_MULTIPLE = 8  # of which sizes are multiples: products of matrices are fastest then


class PaddedSize(NamedTuple):
    """The size that a batch is padded to."""

    level: int
    colored: tuple[bool, ...]  # for each round, whether there are colored messages
    # Without them the weights of colored messages get no gradient, and that is not the same as a gradient of zero.


def profile_of(sizes: Tensor, batch_size: int) -> Tensor:
    """The size of each segment that hardly any random batch exceeds, from those of all graphs `[graphs, segments]`."""
    mean, count = sizes.double().mean(0), min(batch_size, sizes.size(0))
    spread = sizes.double().std(0, correction=0) * math.sqrt(count * (1 - count / sizes.size(0)))
    return torch.where(mean > 0, count * mean + _DEVIATIONS * spread + _MARGIN, 0)


def level_of(sizes: Sequence[int], profile: Sequence[float], step: float = STEP) -> int | None:
    """The lowest level at which a batch with these sizes of segments fits, with one position of padding in each.

    `None` if it has something in a segment that is always empty.
    """
    if any(size and not usual for size, usual in zip(sizes, profile, strict=True)):
        return None
    most = max(((size + 1) / usual for size, usual in zip(sizes, profile, strict=True) if usual), default=1.0)
    return math.ceil(math.log(most) / math.log(step) - 1e-9)


def room_at(level: int, profile: Tensor, step: float = STEP) -> Tensor:
    """The sizes of all segments at a level `[segments]`."""
    exact = (profile * step**level / _MULTIPLE).ceil().long() * _MULTIPLE
    return torch.where(profile > 0, exact.clamp(min=_MULTIPLE), 0)


class PaddedBatches:
    """Cuts batches of fixed sizes out of many graphs, from a list of graphs that lies on the device.

    All sizes of a batch are those of one profile, times a power of `step`, its level: so there are few different ones,
    and the step of each is recorded once.

    Args:
        whole: What all graphs were prepared to, on the device.
        target: Of all queries, or of all graphs.
        batch_size: The most graphs in a batch.
        of_graphs: Whether graphs are asked about.
        profile: The sizes of level 0 `[segments]`; by default those that hardly any random batch exceeds.
        step: The factor between the sizes of two levels.
    """

    def __init__(
        self,
        whole: PreparedGraphs,
        target: Tensor | None,
        batch_size: int,
        of_graphs: bool = False,
        profile: Tensor | None = None,
        step: float = STEP,
    ) -> None:
        self.of_graphs, self.step, self._cutters = of_graphs, step, dict[PaddedSize, PaddedCutter]()
        self.sizes = segment_sizes(whole.cutter)  # [graphs, segments]
        self.profile = profile_of(self.sizes, batch_size) if profile is None else profile
        self._profile: list[float] = self.profile.tolist()
        self.whole, self.target = whole, target
        self._rows = whole.schedule.row_segments(whole.store)
        self._colored = whole.schedule.color_segments(whole.store)
        self._colored_rows = whole.schedule.colored_row_segments(whole.store)
        self.none = whole.cutter.num_graphs  # the id that stands for no graph
        self.graphs = torch.full((batch_size + 1,), self.none, device=whole.store.pool.device)

    def follow(self, whole: PreparedGraphs) -> bool:
        """Goes on with other queries, if they were written over the tensors of those before."""
        if whole.store is not self.whole.store:
            return False
        self.whole, self.sizes = whole, segment_sizes(whole.cutter)
        return True

    def size(self, graphs: Tensor) -> PaddedSize | None:
        """The size of the batch of these graphs, ids on the CPU; `None` if it has to be run as it is."""
        sizes: list[int] = self.sizes.index_select(0, graphs).sum(0).tolist()
        if any(sum(sizes[rows]) < 2 for rows in self._rows):
            return None  # BatchNorm does not normalize a single row
        if any(sum(self._profile[rows]) and not sum(sizes[rows]) for rows in self._colored_rows):
            return None  # as for messages: weights of a color without rows get no gradient
        level = level_of(sizes, self._profile, self.step)
        return None if level is None else PaddedSize(level, tuple(sizes[first] > 0 for first, _ in self._colored))

    def load(self, graphs: Tensor) -> None:
        """Writes the list of the graphs of the next batch, ids on the CPU."""
        ids = torch.nn.functional.pad(graphs, (0, self.graphs.numel() - graphs.numel()), value=self.none)
        self.graphs.copy_(ids, non_blocking=True)

    def cut(self, size: PaddedSize) -> GraphBatch:
        """The batch of the graphs in the list: index arithmetic on the device, on tensors of fixed shapes."""
        graphs, queries, target = self.graphs, self.whole.queries, self.target
        cut = self._cutter(size).cut(graphs)
        real = graphs < self.none if self.of_graphs else cut.real(queries)
        if target is not None and self.of_graphs:
            target = target.index_select(0, graphs.clamp(max=self.none - 1))
        elif target is not None:
            target = cut.take(target, queries)
        owner = cut.graph(queries) if self.of_graphs else graphs  # which is read where graphs are asked about alone
        return GraphBatch(self.whole.prepared(cut), owner, graphs.numel(), target, real=real)

    def prepare(self, size: PaddedSize) -> None:
        """Works out all that depends on the size alone."""
        self._cutter(size)

    def _cutter(self, size: PaddedSize) -> PaddedCutter:
        if size not in self._cutters:
            room = room_at(size.level, self.profile, self.step)
            for both, there in zip(self._colored, size.colored, strict=True):
                if not there:
                    room[both] = 0
            self._cutters[size] = PaddedCutter(
                self.whole.cutter, self.graphs.numel(), room, kernels_on(self.graphs.device)
            )
        return self._cutters[size]
