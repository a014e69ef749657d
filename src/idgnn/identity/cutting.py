"""Cuts what belongs to a few graphs out of what belongs to many, by index arithmetic alone.

What a network computes depends on its graphs only, so it is worked out once for a whole dataset, and a training step
copies the part that its graphs need. All of it lies in *spaces* of positions (nodes, rows, messages, queries), in which
each graph owns a few runs. A batch takes the runs of its graphs; an index that pointed to a position of the whole is
sent to the place that this position took in the batch.

On a GPU a step is made of many small kernels whose launch takes longer than their work. So everything that is cut lies
in one tensor, and a batch costs the same few kernels however much it is made of. :mod:`idgnn.identity.padded_cut` cuts
batches of fixed sizes, so that these kernels can be recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ROWS = 2  # most spaces have two fields
_LEAST_SPARE = 64  # positions: small numbers vary most


@dataclass(frozen=True)
class Space:
    """Positions that belong to graphs. There are blocks one after the other; in each the graphs come in order."""

    number: int
    owner: Tensor  # [positions] the graph of each
    block: Tensor  # [positions] the block of each, not decreasing
    aligned: bool  # whether each block begins at a fixed place where batches are padded


@dataclass(frozen=True)
class Field:
    """Whole numbers, one for each position of a space."""

    space: int
    row: int
    to: int | None = None  # the space that they are positions in; None: they stay as they are
    block: int | None = None  # they are positions in this block and those behind, counted from where it begins


@dataclass(frozen=True)
class Pointers:
    """Where the entries of each position begin, of which a field has the numbers; for some blocks of its space."""

    number: int
    counts: Field
    first: int
    last: int | None  # the block behind the last one


@dataclass(frozen=True)
class Store:
    """The tensors that batches are cut out of. Those of another cutter may be written over them.

    `pool` has a column for each position of all spaces, one space behind the other, and behind all of them one for the
    padding of each segment (:mod:`idgnn.identity.padded_cut`). Its entries are addresses in `place`, a tensor of
    numbers: first 0, 1, 2, ..., for fields that stay as they are, then for every column where it went in the last
    batch.
    """

    pool: Tensor  # [ROWS, columns]
    place: Tensor  # [numbers + columns]
    numbers: int
    first: list[int]  # the column where each space begins
    room: list[int]  # the columns that each space has
    blocks: list[int]  # of each space
    segments: list[int]  # of each space: its blocks if it is aligned, otherwise one
    fields: list[list[Field]]  # of each space
    pointer_lists: list[Pointers]
    runs: Tensor  # [2, blocks of all spaces, graphs + 1] length and first column of every run; the last graph has none

    def segments_of(self, space: int) -> slice:
        """The segments of a space among those of all spaces."""
        first = sum(self.segments[:space])
        return slice(first, first + self.segments[space])

    @property
    def moving(self) -> Tensor:
        """Where every column went in the last batch."""
        return self.place[self.numbers :]

    @property
    def columns(self) -> int:
        """The number of columns of positions; those of padding come behind."""
        return sum(self.room)


class Cutter:
    """Finds what belongs to any graphs. All sizes are known on the CPU, so that a GPU is never waited for."""

    store: Store

    def __init__(self, num_graphs: int) -> None:
        self.num_graphs = num_graphs
        self.spaces: list[Space] = []
        self.fields: list[list[Field]] = []  # of each space
        self.pointer_lists: list[Pointers] = []
        self._values: list[list[Tensor]] = []  # of the fields
        self._copies: dict[int, Space] = {}  # a second space with the same positions, for more fields

    def space(self, owner: Tensor, block: Tensor | None = None, aligned: bool = False) -> Space:
        """A new space; without `block` it has as few blocks as it can have."""
        self.spaces.append(Space(len(self.spaces), owner, blocks_of(owner) if block is None else block, aligned))
        self.fields.append([])
        self._values.append([])
        return self.spaces[-1]

    def field(self, space: Space, values: Tensor, to: Space | None = None, block: int | None = None) -> Field:
        """Numbers in a space: positions in another space, or without one numbers that stay as they are.

        With `block` all of them lie in that block or behind it. In a batch they are counted from where it begins.
        """
        fields = self.fields[space.number]
        if len(fields) == ROWS:
            if space.number not in self._copies:
                self._copies[space.number] = self.space(space.owner, space.block, space.aligned)
            return self.field(self._copies[space.number], values, to, block)
        fields.append(Field(space.number, len(fields), None if to is None else to.number, block))
        self._values[space.number].append(values)
        return fields[-1]

    def pointers(self, counts: Field, first: int = 0, last: int | None = None) -> Pointers:
        """Where the entries of each position begin, from the number of its entries, for the blocks from `first` on."""
        self.pointer_lists.append(Pointers(len(self.pointer_lists), counts, first, last))
        return self.pointer_lists[-1]

    def finish(self, over: Store | None = None, spare: float = 0.0) -> None:
        """Lays everything out; after this nothing can be added.

        Args:
            over: Tensors that are written over if everything fits into them; otherwise new ones are made.
            spare: The share of columns that is left free in new ones, for what is written over them later.
        """
        sizes = [space.owner.numel() for space in self.spaces]
        blocks = [int(space.block[-1]) + 1 if space.block.numel() else 1 for space in self.spaces]
        staying = [
            values
            for fields, found in zip(self.fields, self._values, strict=True)
            for field, values in zip(fields, found, strict=True)
            if field.to is None and values.numel()
        ]
        numbers = max((int(values.max()) for values in staying), default=0) + 1
        if over is not None and self._fits(over, sizes, blocks, numbers):
            self.store = over
        else:
            self.store = self._new_store(sizes, blocks, numbers, spare)
        store = self.store
        for space, found in enumerate(self._values):
            for field, values in zip(self.fields[space], found, strict=True):
                offset, padding = 0, 0
                if field.to is not None:
                    offset = store.numbers + store.first[field.to]
                    last = store.segments[field.to] - 1
                    inside = last if field.block is None else min(field.block, last)
                    padding = store.numbers + store.columns + store.segments_of(field.to).start + inside
                first = store.first[space]
                torch.add(values, offset, out=store.pool[field.row, first : first + sizes[space]])
                behind = store.columns + store.segments_of(space).start
                store.pool[field.row, behind : behind + store.segments[space]] = padding
        self._values.clear()
        runs = [self._runs(space, number) for space, number in zip(self.spaces, blocks, strict=True)]
        self.size = torch.cat([size for size, _ in runs])  # [blocks of all spaces, graphs], on the CPU
        self._start = torch.cat([start for _, start in runs])
        store.runs[..., :-1] = torch.stack([self.size, self._start]).to(store.runs.device)

    def cut(self, graphs: Tensor) -> Cut:
        """What belongs to these graphs `[graphs]`, ids on the CPU, in their order."""
        store = self.store
        size, start = self.size[:, graphs], self._start[:, graphs]  # [blocks of all spaces, graphs]
        sizes = [each.tolist() for each in size.sum(1).split(store.blocks)]
        totals = [sum(each) for each in sizes]
        length = size.flatten()
        skip = start.flatten() - length.cumsum(0) + length  # how far each run lies from where it goes
        base = torch.tensor([sum(totals[:i]) for i in range(len(totals))])  # where each space begins in the batch
        base = base.repeat_interleave(torch.tensor(store.blocks) * graphs.numel())
        which = torch.arange(graphs.numel()).repeat(size.size(0))
        length, skip, base, which = torch.stack([length, skip, base, which]).to(store.pool.device)
        run = torch.repeat_interleave(length, output_size=sum(totals))
        places = torch.arange(sum(totals), device=run.device)
        index = places + skip.index_select(0, run)
        store.moving.index_copy_(0, index, places - base.index_select(0, run))
        found = store.place.index_select(0, store.pool.index_select(1, index).flatten()).view(ROWS, -1)
        return Cut(found.split(totals, dim=1), index.split(totals), store.first, sizes, run.split(totals), which)

    def _fits(self, store: Store, sizes: list[int], blocks: list[int], numbers: int) -> bool:
        return (
            store.fields == self.fields
            and store.pointer_lists == self.pointer_lists
            and store.blocks == blocks
            and store.runs.size(-1) == self.num_graphs + 1
            and store.numbers >= numbers
            and all(room >= size for room, size in zip(store.room, sizes, strict=True))
        )

    def _new_store(self, sizes: list[int], blocks: list[int], numbers: int, spare: float) -> Store:
        device = self.spaces[0].owner.device
        room = [with_spare(size, spare) for size in sizes]
        numbers = with_spare(numbers, spare)
        first = [sum(room[:i]) for i in range(len(room))]
        segments = [number if space.aligned else 1 for space, number in zip(self.spaces, blocks, strict=True)]
        columns = sum(room) + sum(segments)
        return Store(
            torch.zeros(ROWS, columns, dtype=torch.long, device=device),
            torch.arange(numbers + columns, device=device),
            numbers,
            first,
            room,
            blocks,
            segments,
            self.fields,
            self.pointer_lists,
            torch.zeros(2, sum(blocks), self.num_graphs + 1, dtype=torch.long, device=device),
        )

    def _runs(self, space: Space, blocks: int) -> tuple[Tensor, Tensor]:
        """The length of every run of a space, and its first column: `[blocks, graphs]`."""
        size = torch.bincount(space.block * self.num_graphs + space.owner, minlength=blocks * self.num_graphs).cpu()
        start = size.cumsum(0) - size + self.store.first[space.number]
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
        values = self._found[field.space][field.row]
        before = sum(self.sizes[field.to][: field.block or 0]) if field.to is not None else 0
        return values - before if before else values

    def pointers(self, pointers: Pointers) -> Tensor:
        """Where the entries of each position begin, and behind them their number."""
        blocks, field = self.sizes[pointers.counts.space], pointers.counts
        first, last = sum(blocks[: pointers.first]), sum(blocks[: pointers.last])
        count = self._found[field.space][field.row, first:last]
        found = count.new_zeros(count.numel() + 1)
        torch.cumsum(count, 0, out=found[1:])
        return found

    def take(self, values: Tensor, space: Space) -> Tensor:
        """The rows of anything else that lies in a space."""
        return values.index_select(0, self.index(space))

    def index(self, space: Space) -> Tensor:
        """The positions of the whole that the batch has of a space."""
        return self._index[space.number] - self._first[space.number]

    def graph(self, space: Space) -> Tensor:
        """The graph, counted within the batch, of each position of a space."""
        return self._which.index_select(0, self._run[space.number])

    def real(self, space: Space) -> Tensor | None:
        """Which positions of a space are no padding; `None`: all of them."""
        return None

    def size(self, space: Space) -> int:
        """How many positions of a space are in the batch."""
        return sum(self.sizes[space.number])


def with_spare(size: int, spare: float) -> int:
    """Room for so many, and a share more, for other ones that are written over them."""
    return size + int(spare * size) + _LEAST_SPARE if spare else size


def blocks_of(owner: Tensor, *splits: int) -> Tensor:
    """The block of each position if a new one begins wherever the graphs start over, and at each of `splits`."""
    begins = torch.zeros_like(owner)
    begins[1:] = owner.diff() < 0
    for split in splits:
        if 0 < split < owner.numel():
            begins[split] = 1
    return begins.cumsum(0)
