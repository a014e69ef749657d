"""Batches that are cut out of a dataset (:mod:`idgnn.identity.padded_cut`), in three launches in place of sixteen."""

from __future__ import annotations

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.aggregation.kernels.sums import jit

POSITIONS = 512  # that a program finds


@jit("ahead first_run begin goes_to runs")
def _places_kernel(ahead, first_run, begin, goes_to, runs, RUNS: tl.constexpr):
    run = tl.program_id(0) * RUNS + tl.arange(0, RUNS)
    here = run < runs
    before = tl.load(ahead + tl.load(first_run + run, mask=here, other=0), mask=here, other=0)
    value = tl.load(ahead + run, mask=here, other=0) + tl.load(begin + run, mask=here, other=0) - before
    tl.store(goes_to + run, value, mask=here)


@jit("goes_to length start padding within moving index run_of real runs positions steps")
def _locate_kernel(
    goes_to, length, start, padding, within, moving, index, run_of, real, runs, positions, steps, BLOCK: tl.constexpr
):
    position = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = position < positions
    # The last run that begins at the position or before it.
    low, high = tl.zeros([BLOCK], dtype=tl.int64), tl.zeros([BLOCK], dtype=tl.int64) + (runs - 1)
    for _ in range(0, steps):
        middle = (low + high + 1) // 2
        there = tl.load(goes_to + middle, mask=here, other=0) <= position
        high = tl.where(there | (low == high), high, middle - 1)
        low = tl.where(there, middle, low)
    place, size = tl.load(start + low, mask=here, other=0), tl.load(length + low, mask=here, other=0)
    column = position - tl.load(goes_to + low, mask=here, other=0) + place
    inside = column < place + size
    column = tl.where(inside, column, tl.load(padding + position, mask=here, other=0))
    tl.store(index + position, column, mask=here)
    tl.store(run_of + position, low, mask=here)
    tl.store(real + position, inside.to(tl.uint8), mask=here)
    # Where many positions of padding share a column, any of them is right.
    tl.store(moving + column, tl.load(within + position, mask=here, other=0), mask=here)


@jit("pool place before index found columns positions")
def _read_kernel(pool, place, before, index, found, columns, positions, BEFORE: tl.constexpr, BLOCK: tl.constexpr):
    position = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here, row = position < positions, tl.program_id(1).to(tl.int64)
    address = tl.load(pool + row * columns + tl.load(index + position, mask=here, other=0), mask=here, other=0)
    value = tl.load(place + address, mask=here, other=0)
    if BEFORE:
        value -= tl.load(before + row * positions + position, mask=here, other=0)
    tl.store(found + row * positions + position, value, mask=here)


def cut_positions(
    pool: Tensor,
    place: Tensor,
    moving: Tensor,
    runs: tuple[Tensor, Tensor],
    ahead: Tensor,
    first_run: Tensor,
    begin: Tensor,
    padding: Tensor,
    within: Tensor,
    before: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The column, the run and whether it is no padding, of each position, and all fields `[rows, positions]`.

    Args:
        pool: Addresses in `place` `[rows, columns]`.
        place: Numbers, and behind them, as its part `moving`, the place of each column in the batch.
        moving: Is written.
        runs: The length and the first column of each run.
        ahead: The number of columns in all runs before each, and behind them of all `[runs + 1]`.
        first_run: The first run of the segment of each run.
        begin: Where the segment of each run begins.
        padding: The column of the padding of each position.
        within: The place of each position in its space.
        before: Is subtracted from the fields `[rows, positions]`.
    """
    (length, start), number, positions = runs, first_run.numel(), padding.numel()
    goes_to, index, run = torch.empty_like(begin), torch.empty_like(padding), torch.empty_like(padding)
    real, found = torch.empty_like(padding, dtype=torch.bool), pool.new_empty(pool.size(0), positions)
    blocks = triton.cdiv(positions, POSITIONS)
    if not positions:
        return index, run, real, found
    with torch.cuda.device_of(pool):
        _places_kernel[(triton.cdiv(number, POSITIONS),)](ahead, first_run, begin, goes_to, number, RUNS=POSITIONS)
        _locate_kernel[(blocks,)](
            goes_to,
            length,
            start,
            padding,
            within,
            moving,
            index,
            run,
            real.view(torch.uint8),
            number,
            positions,
            number.bit_length(),
            BLOCK=POSITIONS,
        )
        _read_kernel[(blocks, pool.size(0))](
            pool,
            place,
            index if before is None else before,
            index,
            found,
            pool.size(1),
            positions,
            BEFORE=before is not None,
            BLOCK=POSITIONS,
        )
    return index, run, real, found
