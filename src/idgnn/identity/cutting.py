"""Cuts what belongs to a few graphs out of what belongs to many, by index arithmetic alone.

What a network computes depends on its graphs only, so it is worked out once for a whole dataset, and a training step
copies the part that its graphs need. All of it lies in *spaces* of positions (nodes, rows, messages, queries), in which
each graph owns a few runs. A batch takes the runs of its graphs; an index that pointed to a position of the whole is
sent to the place that this position took in the batch.

On a GPU a step is made of many small kernels whose launch takes longer than their work. So everything that is cut lies
in one tensor, and a batch costs the same few kernels however much it is made of.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_ROWS = 2  # most spaces have two fields


@dataclass(frozen=True)
class Space:
    """Positions that belong to graphs. There are blocks one after the other; in each the graphs come in order."""

    number: int
    owner: Tensor  # [positions] the graph of each
    block: Tensor  # [positions] the block of each, not decreasing


@dataclass(frozen=True)
class Field:
    """Whole numbers, one for each position of a space."""

    space: int
    row: int


class Cutter:
    """Finds what belongs to any graphs. All sizes are known on the CPU, so that a GPU is never waited for.

    Everything lies in one tensor with `_ROWS` rows. Its columns are the positions of all spaces, one space behind the
    other, and its entries are addresses in `place`, a tensor of numbers: first 0, 1, 2, ..., for fields that stay as
    they are, then for every position of every space where it went in the last batch.
    """

    def __init__(self, num_graphs: int) -> None:
        self.num_graphs = num_graphs
        self.spaces: list[Space] = []
        self._fields: list[list[tuple[Tensor, Space | None]]] = []  # of each space
        self._copies: dict[int, Space] = {}  # a second space with the same positions, for more fields

    def space(self, owner: Tensor, block: Tensor | None = None) -> Space:
        """A new space; without `block` it has as few blocks as it can have."""
        self.spaces.append(Space(len(self.spaces), owner, blocks_of(owner) if block is None else block))
        self._fields.append([])
        return self.spaces[-1]

    def field(self, space: Space, values: Tensor, to: Space | None = None) -> Field:
        """Numbers in a space: positions in another space, or without one numbers that stay as they are."""
        fields = self._fields[space.number]
        if len(fields) == _ROWS:
            if space.number not in self._copies:
                self._copies[space.number] = self.space(space.owner, space.block)
            return self.field(self._copies[space.number], values, to)
        fields.append((values, to))
        return Field(space.number, len(fields) - 1)

    def finish(self) -> None:
        """Lays everything out; after this nothing can be added."""
        device = self.spaces[0].owner.device
        sizes = [space.owner.numel() for space in self.spaces]
        self._first = [sum(sizes[:i]) for i in range(len(sizes))]  # the column where each space begins
        staying = [values for fields in self._fields for values, to in fields if to is None and values.numel()]
        numbers = max((int(values.max()) for values in staying), default=-1) + 1
        self._pool = torch.zeros(_ROWS, sum(sizes), dtype=torch.long, device=device)
        for fields, first, size in zip(self._fields, self._first, sizes, strict=True):
            for row, (values, to) in enumerate(fields):
                offset = 0 if to is None else numbers + self._first[to.number]
                torch.add(values, offset, out=self._pool[row, first : first + size])
        self._fields.clear()
        self._place = torch.arange(numbers + sum(sizes), device=device)
        self._moving = self._place[numbers:]
        runs = [self._runs(space) for space in self.spaces]
        self._blocks = [size.size(0) for size, _ in runs]
        self._size = torch.cat([size for size, _ in runs])  # [blocks of all spaces, graphs]
        self._start = torch.cat([start for _, start in runs])

    def cut(self, graphs: Tensor) -> Cut:
        """What belongs to these graphs `[graphs]`, ids on the CPU, in their order."""
        size, start = self._size[:, graphs], self._start[:, graphs]  # [blocks of all spaces, graphs]
        sizes = [each.tolist() for each in size.sum(1).split(self._blocks)]
        totals = [sum(each) for each in sizes]
        length = size.flatten()
        skip = start.flatten() - length.cumsum(0) + length  # how far each run lies from where it goes
        base = torch.tensor([sum(totals[:i]) for i in range(len(totals))])  # where each space begins in the batch
        base = base.repeat_interleave(torch.tensor(self._blocks) * graphs.numel())
        which = torch.arange(graphs.numel()).repeat(size.size(0))
        length, skip, base, which = torch.stack([length, skip, base, which]).to(self._pool.device)
        run = torch.repeat_interleave(length, output_size=sum(totals))
        places = torch.arange(sum(totals), device=run.device)
        index = places + skip.index_select(0, run)
        self._moving.index_copy_(0, index, places - base.index_select(0, run))
        found = self._place.index_select(0, self._pool.index_select(1, index).flatten()).view(_ROWS, -1)
        return Cut(found.split(totals, dim=1), index.split(totals), self._first, sizes, run.split(totals), which)

    def _runs(self, space: Space) -> tuple[Tensor, Tensor]:
        """The length of every run of a space, and its first column: `[blocks, graphs]`."""
        blocks = int(space.block[-1]) + 1 if space.block.numel() else 1
        size = torch.bincount(space.block * self.num_graphs + space.owner, minlength=blocks * self.num_graphs).cpu()
        start = size.cumsum(0) - size + self._first[space.number]
        return size.view(blocks, -1), start.view(blocks, -1)


@dataclass(frozen=True)
class Cut:
    """What belongs to the graphs of a batch; all of it is listed by the numbers of the spaces."""

    _found: tuple[Tensor, ...]  # [rows, positions] the fields
    _index: tuple[Tensor, ...]  # [positions] the columns that they came from
    _first: list[int]  # the column where the space begins
    sizes: list[list[int]]  # the number of positions in each block
    _run: tuple[Tensor, ...]  # [positions] the run that each of them belongs to
    _which: Tensor  # [runs] the graph of the batch that each run belongs to

    def __getitem__(self, field: Field) -> Tensor:
        """The numbers of a field."""
        return self._found[field.space][field.row]

    def take(self, values: Tensor, space: Space) -> Tensor:
        """The rows of anything else that lies in a space."""
        return values.index_select(0, self.index(space))

    def index(self, space: Space) -> Tensor:
        """The positions of the whole that the batch has of a space."""
        return self._index[space.number] - self._first[space.number]

    def graph(self, space: Space) -> Tensor:
        """The graph, counted within the batch, of each position of a space."""
        return self._which.index_select(0, self._run[space.number])

    def size(self, space: Space) -> int:
        """How many positions of a space are in the batch."""
        return sum(self.sizes[space.number])


def blocks_of(owner: Tensor, *splits: int) -> Tensor:
    """The block of each position if a new one begins wherever the graphs start over, and at each of `splits`."""
    begins = torch.zeros_like(owner)
    begins[1:] = owner.diff() < 0
    for split in splits:
        if 0 < split < owner.numel():
            begins[split] = 1
    return begins.cumsum(0)
