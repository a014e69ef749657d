"""Rows that some targets add to theirs, and the gradients of these rows."""

from __future__ import annotations

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.aggregation.kernels.sums import WARPS, jit, num_columns, part_type, total_type


@jit("x update previous out split channels")
def _add_kernel(
    x, update, previous, out, split, channels, IN_PLACE: tl.constexpr, TOTAL: tl.constexpr, CHANNELS: tl.constexpr
):
    target = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    here, cell = column < channels, target * channels + column
    row = tl.load(previous + target) - split
    if IN_PLACE:
        here = here & (row >= 0)  # all other rows are not even read
    value = tl.load(x + cell, mask=here, other=0).to(TOTAL)
    value += tl.load(update + row * channels + column, mask=here & (row >= 0), other=0).to(TOTAL)
    tl.store(out + cell, value, mask=here)


@jit("grad previous out split channels")
def _collect_kernel(grad, previous, out, split, channels, TOTAL: tl.constexpr, CHANNELS: tl.constexpr):
    target = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    row = tl.load(previous + target) - split
    here = (column < channels) & (row >= 0)
    value = tl.load(grad + target * channels + column, mask=here, other=0).to(TOTAL)
    # With two colors many targets may have the same row; otherwise there is one, and the sum has no order.
    tl.atomic_add(out + row * channels + column, value, mask=here, sem="relaxed")


def add_rows(x: Tensor, update: Tensor, previous: Tensor, split: int, out: Tensor) -> None:
    """Writes `x[t] + update[previous[t] - split]` to `out[t]`, without the update where that row is none of it.

    Where `out` is `x` itself, only rows that change are read and written.
    """
    if not x.numel():
        return
    width = num_columns(x)
    with torch.cuda.device_of(x):
        _add_kernel[(x.size(0), triton.cdiv(x.size(1), width))](
            x,
            update,
            previous,
            out,
            split,
            x.size(1),
            IN_PLACE=x is out,
            TOTAL=total_type(x),
            CHANNELS=width,
            num_warps=WARPS,
        )


def collect_rows(grad: Tensor, previous: Tensor, split: int, rows: int) -> Tensor:
    """For each row of an update the sum of `grad[t]` over the targets that added it: `[rows, channels]`."""
    out = grad.new_zeros(rows, grad.size(1), dtype=part_type(grad))
    width = num_columns(grad)
    if grad.numel() and rows:
        with torch.cuda.device_of(grad):
            _collect_kernel[(grad.size(0), triton.cdiv(grad.size(1), width))](
                grad,
                previous,
                out,
                split,
                grad.size(1),
                TOTAL=total_type(grad),
                CHANNELS=width,
                num_warps=WARPS,
            )
    return out.to(grad.dtype)
