r"""The columns of the powers of a matrix, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.walks.matrix import SINGLE, WalkGraph, WalkMatrix
from idgnn.identity.walks.progress import Done

# Columns are padded to whole vector registers of a processor.
_ALIGN = 8
# Blocks of unequal widths share a chunk while the padding that this takes costs less than the calls for another chunk.
_PADDING = 2**14
# On a CPU the states of a chunk should stay in the cache (2 MiB each), but products with few columns are slow. On a GPU
# a chunk takes all the memory that it may.
_NUMBERS_ON_CPU = 2**18
_COLUMNS_ON_CPU = 64


@dataclass(frozen=True)
class Chunk:
    """All columns of one or more blocks, or a part of the columns of one block."""

    start: int  # the rows of the blocks
    stop: int
    first: int  # the roots, as rows counted from start
    last: int
    width: int  # columns: column c belongs, in each block, to its root in slot first + c
    blocks: int
    only_roots: bool  # whether every row from first to last has a column

    @property
    def numbers(self) -> int:
        """How many numbers one state of the chunk has."""
        return (self.stop - self.start) * self.width


def chunks(graph: WalkGraph, memory: int, bytes_per_number: int) -> list[Chunk]:
    """Cuts the columns of all roots into chunks whose states take at most `memory` bytes, or else a single column.

    Small blocks share the columns of a chunk, since no walk connects them; one large block takes several chunks.
    """
    most = numbers = max(1, memory // bytes_per_number)
    if graph.size.device.type == "cpu":
        numbers = min(most, _NUMBERS_ON_CPU)
    ptr, roots = graph.block_ptr.cpu(), graph.block_roots.cpu()
    root_ptr = torch.cat([roots.new_zeros(1), roots.cumsum(0)])
    plan: list[Chunk] = []
    for width, begin, end in _equal_widths(roots, ptr, numbers):
        while begin < end:
            start = int(ptr[begin])
            # As many blocks as fit, and at least one.
            fitting = int(torch.searchsorted(ptr, start + numbers // width, right=True)) - 1
            after = min(max(fitting, begin + 1), end)
            rows = int(ptr[after]) - start
            if rows * width <= numbers:
                only_roots = int(root_ptr[after] - root_ptr[begin]) == rows
                plan.append(Chunk(start, start + rows, 0, rows, width, after - begin, only_roots))
            else:
                columns_at_once = min(most // rows, max(numbers // rows, _COLUMNS_ON_CPU))
                plan.extend(_parts(start, rows, int(roots[begin]), max(1, columns_at_once)))
            begin = after
    return plan


def _equal_widths(block_roots: Tensor, ptr: Tensor, numbers: int) -> Iterator[tuple[int, int, int]]:
    """Runs of blocks that get the same number of columns: the width, the first block, the block after the last."""
    padded = (block_roots + _ALIGN - 1).div(_ALIGN, rounding_mode="floor") * _ALIGN
    widths, counts = torch.unique_consecutive(padded, return_counts=True)
    run: tuple[int, int, int] | None = None
    for width, count in zip(widths.tolist(), counts.tolist(), strict=True):
        if run is None:
            run = (width, 0, count)
            continue
        rows = int(ptr[run[2] + count] - ptr[run[2]])
        if run[0] ** 2 <= numbers and rows * (run[0] - width) <= _PADDING:
            run = (run[0], run[1], run[2] + count)
        else:
            yield run
            run = (width, run[2], run[2] + count)
    if run is not None:
        yield run


def _parts(start: int, rows: int, roots: int, width: int) -> Iterator[Chunk]:
    if width > _ALIGN:
        width -= width % _ALIGN
    for first in range(0, roots, width):
        last = min(first + width, roots)
        yield Chunk(start, start + rows, first, last, last - first, 1, True)


def on_rows(graph: WalkGraph, plan: list[Chunk], done: Done) -> Iterator[tuple[Chunk, WalkMatrix, WalkMatrix]]:
    """Each chunk with A and its transpose on its rows, which the chunks of one block share.

    `done` is called after each chunk, with its number of rows and columns multiplied.
    """
    rows: tuple[int, int] | None = None
    forward = backward = graph.forward
    for chunk in plan:
        if rows != (chunk.start, chunk.stop):
            rows = (chunk.start, chunk.stop)
            forward = graph.forward.within(*rows)
            backward = forward if graph.backward is graph.forward else graph.backward.within(*rows)
        yield chunk, forward, backward
        done(chunk.numbers)


def columns(
    graph: WalkGraph, chunk: Chunk, matrix: WalkMatrix, transposed: WalkMatrix, powers: int
) -> Iterator[Tensor]:
    """The chunk's columns of M, M^2, ..., each `[rows, width]`, in float32 as long as that is exact."""
    low, high = int(transposed.ptr[chunk.first]), int(transposed.ptr[chunk.last])
    column = graph.slot.index_select(0, transposed.row[low:high]) - chunk.first
    entry = transposed.entry[low:high]
    place = transposed.column[low:high] * chunk.width + column
    if not chunk.only_roots:
        wanted = column < chunk.width
        place, entry = place[wanted], entry[wanted]
    dtype = torch.float32 if graph.single_powers >= 1 else torch.float64
    state = torch.zeros(chunk.stop - chunk.start, chunk.width, dtype=dtype, device=entry.device)
    state.view(-1)[place] = entry.to(dtype)
    yield state
    on_cpu = state.device.type == "cpu"  # elsewhere, looking at the numbers would take longer than float64
    for power in range(2, powers + 1):
        surely = power <= graph.single_powers
        if state.dtype == torch.float32 and (surely or on_cpu):
            product = matrix @ state
            # No term is negative, so a sum below 2^24 is exact.
            exact = surely or not product.numel() or float(product.max()) < SINGLE
            state = product if exact else matrix @ state.double()
        else:
            state = matrix @ state.double()
        yield state
