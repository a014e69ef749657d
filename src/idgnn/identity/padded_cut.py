r"""Batches of fixed sizes: cut as :mod:`idgnn.identity.cutting` does, with padding behind what belongs to the graphs.

A recorded CUDA graph runs the same kernels on the same shapes again and again. So a batch is laid out in *segments* of
fixed sizes, whatever its graphs: each is filled by the runs of the graphs, and what is left is padding.

The rows of a round are aligned: every block is a segment, because layers split rows at fixed places. All other spaces
are one segment, so that messages stay without gaps, and pointers end where padding begins::

    rows        | plain rows of graphs 0 1 2 ... |padding| own rows of graphs 0 1 2 ... |padding| colored ... |padding|
                0                                        ^ Exchange.num_plain                   ^ Round.split
    messages    | of rows of block 0, graphs 0 1 2 ... | of block 1, graphs 0 1 2 ... | ... | padding                  |
                0                                                                           ^ ptr[-1]
    queries     | of graphs 0 1 2 ...                                                       | padding                  |

Nothing real depends on padding:

- every segment has at least one position of padding, and padding points to padding: a target of padding has its state
  from a row of padding, a message of padding leads from a row of padding to one;
- pointers give no message to a row of padding, and sums end at `ptr[-1]`;
- `Round.real` says which targets count in BatchNorm; losses count real queries alone. So gradients of padding are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from idgnn.identity.cutting import ROWS, Cutter, Field, Pointers, Space


def segment_sizes(cutter: Cutter) -> Tensor:
    """How many positions each graph has in each segment, on the CPU: `[graphs, segments]`."""
    found, store = [], cutter.store
    for sizes, segments in zip(cutter.size.split(store.blocks), store.segments, strict=True):
        found.append(sizes if segments == sizes.size(0) else sizes.sum(0, keepdim=True))
    return torch.cat(found).t().contiguous()


class PaddedCutter:
    """Cuts batches of fewer than `num_graphs` graphs, padded to the given sizes. All tensors have fixed shapes.

    Args:
        cutter: For the whole dataset. Its tensors may be written over: they are read anew for each batch.
        num_graphs: The number of graphs in a batch, of which the last one is always that for none.
        room: The size of each segment, at least one more than the graphs have; 0 if the dataset has none `[segments]`.
        kernels: Has `cut_positions` for the device, which computes :meth:`_positions` in fewer launches.
    """

    def __init__(self, cutter: Cutter, num_graphs: int, room: Tensor, kernels: ModuleType | None = None) -> None:
        store = self.store = cutter.store
        device, self.num_graphs, self.kernels = store.pool.device, num_graphs, kernels
        by_space = room.split(store.segments)
        self.sizes = [_blocks(each.tolist(), blocks) for each, blocks in zip(by_space, store.blocks, strict=True)]
        self.totals = [sum(each) for each in self.sizes]
        total = sum(self.totals)
        begin = room.cumsum(0) - room  # where each segment begins
        segment = torch.arange(room.numel())
        in_space = segment.split(store.segments)
        of_block = torch.cat([each.expand(blocks) for each, blocks in zip(in_space, store.blocks, strict=True)])
        is_first = of_block.diff(prepend=torch.tensor([-1])) != 0  # whether a segment begins with a block
        block = torch.arange(of_block.numel())
        first_block = torch.where(is_first, block, 0).cummax(0).values
        of_position = segment.repeat_interleave(room)
        space_begin = torch.tensor([sum(self.totals[:i]) for i in range(len(self.totals))])
        self._position = torch.arange(total, device=device)
        self._ahead = torch.zeros(of_block.numel() * num_graphs + 1, dtype=torch.long, device=device)  # [runs + 1]
        self._first_run = (first_block * num_graphs).repeat_interleave(num_graphs).to(device)
        self._begin = begin[of_block].repeat_interleave(num_graphs).to(device)  # [runs]
        self._padding = (store.columns + of_position).to(device)  # [positions] the column of their padding
        self._within = torch.arange(total) - space_begin.repeat_interleave(torch.tensor(self.totals))
        self._within = self._within.to(device)  # [positions] the place in the space
        self._before = self._offsets(total, device)
        self._counts, self._lead, self._pointer_sizes = self._pointer_lists(space_begin.tolist(), device)

    def cut(self, graphs: Tensor) -> PaddedCut:
        """What belongs to these graphs `[num_graphs]`, ids on the device. The number of all graphs stands for none."""
        store = self.store
        length, start = store.runs.index_select(2, graphs).flatten(1)  # [runs] each
        torch.cumsum(length, 0, out=self._ahead[1:])
        if self.kernels is None:
            index, run, real, found = self._positions(length, start)
        else:
            given = (self._ahead, self._first_run, self._begin, self._padding, self._within, self._before)
            where = (store.pool, store.place, store.moving, (length, start))
            index, run, real, found = self.kernels.cut_positions(*where, *given)
        summed = found.flatten().index_select(0, self._counts).cumsum(0)
        pointers = summed - summed.index_select(0, self._lead)
        return PaddedCut(
            found.split(self.totals, dim=1),
            index.split(self.totals),
            run.split(self.totals),
            real.split(self.totals),
            pointers.split(self._pointer_sizes),
            self,
        )

    def _positions(self, length: Tensor, start: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The column, the run and whether it is no padding, of each position, and all fields `[ROWS, positions]`."""
        store = self.store
        goes_to = self._ahead[:-1] + (self._begin - self._ahead.index_select(0, self._first_run))
        run = torch.searchsorted(goes_to[1:], self._position, right=True)
        skip, end = torch.stack([start - goes_to, start + length]).index_select(1, run)  # [positions] each
        index = self._position + skip
        real = index < end
        index = torch.where(real, index, self._padding)
        # Where many positions of padding share a column, any of them is right.
        store.moving.index_copy_(0, index, self._within)
        found = store.place.index_select(0, store.pool.index_select(1, index).flatten()).view(ROWS, -1)
        return index, run, real, found if self._before is None else found - self._before

    def _offsets(self, total: int, device: torch.device) -> Tensor | None:
        """For fields that are counted from a block on, where that begins: `[ROWS, positions]`; `None` if all are 0."""
        before = torch.zeros(ROWS, total, dtype=torch.long)
        for space, fields in enumerate(self.store.fields):
            first = sum(self.totals[:space])
            for field in fields:
                if field.to is not None and field.block:
                    before[field.row, first : first + self.totals[space]] = sum(self.sizes[field.to][: field.block])
        return before.to(device) if before.any() else None

    def _pointer_lists(self, begin: list[int], device: torch.device) -> tuple[Tensor, Tensor, list[int]]:
        """All lists of pointers are one running sum. For each of its entries: which number of all fields it adds, and
        which entry has the sum before its list. Each list begins with the number of a position of padding, a 0."""
        total, counts, lead, sizes = sum(self.totals), [], [], []
        for pointers in self.store.pointer_lists:
            blocks, field = self.sizes[pointers.counts.space], pointers.counts
            first, last = sum(blocks[: pointers.first]), sum(blocks[: pointers.last])
            row = field.row * total + begin[field.space]
            counts += [torch.tensor([row + sum(blocks) - 1]), torch.arange(row + first, row + last)]
            lead.append(torch.full((last - first + 1,), sum(sizes)))
            sizes.append(last - first + 1)
        return torch.cat(counts).to(device), torch.cat(lead).to(device), sizes


@dataclass(frozen=True)
class PaddedCut:
    """As :class:`idgnn.identity.cutting.Cut`, with the fixed sizes of all blocks."""

    _found: tuple[Tensor, ...]  # [rows, positions] the fields
    _index: tuple[Tensor, ...]  # [positions] the columns that they came from
    _run: tuple[Tensor, ...]  # [positions] the run that each of them belongs to, or that ends before it
    _real: tuple[Tensor, ...]  # [positions] whether they are no padding
    _pointers: tuple[Tensor, ...]
    _cutter: PaddedCutter

    @property
    def sizes(self) -> list[list[int]]:
        """The number of positions in each block, padding included."""
        return self._cutter.sizes

    def __getitem__(self, field: Field) -> Tensor:
        """The numbers of a field."""
        return self._found[field.space][field.row]

    def pointers(self, pointers: Pointers) -> Tensor:
        """Where the entries of each position begin, and behind them their number."""
        return self._pointers[pointers.number]

    def take(self, values: Tensor, space: Space) -> Tensor:
        """The rows of anything else that lies in a space; for padding any of them."""
        return values.index_select(0, self.index(space).clamp(max=values.size(0) - 1))

    def index(self, space: Space) -> Tensor:
        """The positions of the whole that the batch has of a space; of padding they lie behind it."""
        return self._index[space.number] - self._cutter.store.first[space.number]

    def graph(self, space: Space) -> Tensor:
        """The graph, counted within the batch, of each position of a space; padding belongs to the last one."""
        size = self._cutter.num_graphs
        return torch.where(self._real[space.number], self._run[space.number] % size, size - 1)

    def real(self, space: Space) -> Tensor:
        """Which positions of a space are no padding."""
        return self._real[space.number]

    def size(self, space: Space) -> int:
        """How many positions of a space are in the batch, padding included."""
        return self._cutter.totals[space.number]


def _blocks(room: list[int], blocks: int) -> list[int]:
    """The sizes of blocks: those that share a segment have it together, and are never told apart."""
    return room if len(room) == blocks else [*room, *[0] * (blocks - 1)]
