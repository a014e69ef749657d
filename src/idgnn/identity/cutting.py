"""Cuts what belongs to a few graphs out of what belongs to many, by index arithmetic alone.

What a network computes depends on its graphs only, so it is worked out once for a whole dataset, and a training step
copies the part that its graphs need. All of it lies in *spaces* of positions (nodes, rows, messages, queries), in which
each graph owns a few runs. A batch takes the runs of its graphs; an index that pointed to a position of the whole is
sent to the place that this position took in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Space:
    """Positions that belong to graphs. There are blocks one after the other; in each the graphs come in order."""

    number: int
    owner: Tensor  # [positions] the graph of each
    block: Tensor  # [positions] the block of each, not decreasing
    place: Tensor  # [positions] where each went in the last batch; meaningless for those that are not in it


@dataclass(frozen=True)
class Cut:
    """The positions of the whole that make up a batch."""

    index: tuple[Tensor, ...]  # for each space: positions of the whole
    sizes: list[list[int]]  # for each space: how many of them lie in each of its blocks
    run: tuple[Tensor, ...]  # for each space: the run that each of them belongs to
    which: Tensor  # [runs] the graph of the batch that each run belongs to

    def take(self, values: Tensor, space: Space) -> Tensor:
        """What the batch has of values that lie in a space."""
        return values.index_select(0, self.index[space.number])

    def send(self, positions: Tensor, space: Space, to: Space) -> Tensor:
        """The same for values that are positions in another space: where these went."""
        return to.place.index_select(0, self.take(positions, space))

    def graph(self, space: Space) -> Tensor:
        """The graph, counted within the batch, of each of its positions in a space."""
        return self.which.index_select(0, self.run[space.number])

    def size(self, space: Space) -> int:
        """How many positions of a space are in the batch."""
        return self.index[space.number].numel()


class Cutter:
    """Finds the positions of any graphs in all spaces at once. Sizes are known on the CPU: nothing waits for a GPU."""

    def __init__(self, num_graphs: int) -> None:
        self.num_graphs = num_graphs
        self.spaces: list[Space] = []
        self._sizes: list[Tensor] = []  # of each space [blocks, graphs]
        self._starts: list[Tensor] = []

    def add(self, owner: Tensor, block: Tensor | None = None) -> Space:
        """A new space; without `block` it has as few blocks as it can have."""
        if block is None:
            block = blocks_of(owner)
        run = block * self.num_graphs + owner
        blocks = int(block[-1]) + 1 if block.numel() else 1
        size = torch.bincount(run, minlength=blocks * self.num_graphs).cpu()
        self._sizes.append(size.view(blocks, self.num_graphs))
        self._starts.append((size.cumsum(0) - size).view(blocks, self.num_graphs))
        self.spaces.append(Space(len(self.spaces), owner, block, torch.empty_like(owner)))
        return self.spaces[-1]

    def cut(self, graphs: Tensor) -> Cut:
        """The positions of these graphs `[graphs]`, ids on the CPU, in every space."""
        device = self.spaces[0].owner.device
        size = [sizes[:, graphs] for sizes in self._sizes]
        skip = [  # how far each run lies from where it goes
            starts[:, graphs].flatten() - runs.flatten().cumsum(0) + runs.flatten()
            for starts, runs in zip(self._starts, size, strict=True)
        ]
        sizes = [runs.sum(1).tolist() for runs in size]
        totals = [sum(blocks) for blocks in sizes]
        length = torch.cat([runs.flatten() for runs in size])
        which = torch.arange(graphs.numel()).repeat(sum(map(len, sizes)))
        length, offset, which = torch.stack([length, torch.cat(skip), which]).to(device)
        run = torch.repeat_interleave(length, output_size=sum(totals))
        places = torch.arange(max(totals), device=device)
        index = (torch.cat([places[:total] for total in totals]) + offset.index_select(0, run)).split(totals)
        for space, positions, total in zip(self.spaces, index, totals, strict=True):
            space.place.index_copy_(0, positions, places[:total])
        return Cut(index, sizes, run.split(totals), which)


def blocks_of(owner: Tensor, split: int | None = None) -> Tensor:
    """The block of each position if a new one begins wherever the graphs start over, and at `split`."""
    begins = torch.zeros_like(owner)
    begins[1:] = owner.diff() < 0
    if split is not None and 0 < split < owner.numel():
        begins[split] = 1
    return begins.cumsum(0)
