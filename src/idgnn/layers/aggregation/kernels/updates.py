"""Rows that some targets add to theirs, and the gradients of these rows."""

from __future__ import annotations

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.aggregation.kernels.sums import jit, num_columns, part_type, total_type

TARGETS = 16  # of a program: most of them are not colored, and a program that finds none takes half a microsecond


@jit("x update previous out split targets channels")
def _add_kernel(
    x,
    update,
    previous,
    out,
    split,
    targets,
    channels,
    IN_PLACE: tl.constexpr,
    TOTAL: tl.constexpr,
    TARGETS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target = tl.program_id(0).to(tl.int64) * TARGETS + tl.arange(0, TARGETS)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    row = tl.load(previous + target, mask=target < targets, other=0) - split
    here, cell = (
        (target < targets)[:, None] & (column < channels)[None, :],
        target[:, None] * channels + column[None, :],
    )
    colored = here & (row >= 0)[:, None]
    if IN_PLACE:
        here = colored  # all other rows are not even read
    value = tl.load(x + cell, mask=here, other=0).to(TOTAL)
    value += tl.load(update + row[:, None] * channels + column[None, :], mask=colored, other=0).to(TOTAL)
    tl.store(out + cell, value, mask=here)


@jit("grad previous out split targets channels")
def _collect_kernel(
    grad,
    previous,
    out,
    split,
    targets,
    channels,
    TOTAL: tl.constexpr,
    TARGETS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target = tl.program_id(0).to(tl.int64) * TARGETS + tl.arange(0, TARGETS)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    row = tl.load(previous + target, mask=target < targets, other=0) - split
    here = ((target < targets) & (row >= 0))[:, None] & (column < channels)[None, :]
    value = tl.load(grad + target[:, None] * channels + column[None, :], mask=here, other=0).to(TOTAL)
    # With two colors many targets may have the same row; otherwise there is one, and the sum has no order.
    tl.atomic_add(out + row[:, None] * channels + column[None, :], value, mask=here, sem="relaxed")


def add_rows(x: Tensor, update: Tensor, previous: Tensor, split: int, out: Tensor) -> None:
    """Writes `x[t] + update[previous[t] - split]` to `out[t]`, without the update where that row is none of it.

    Where `out` is `x` itself, only rows that change are read and written.
    """
    if not x.numel():
        return
    width = num_columns(x)
    with torch.cuda.device_of(x):
        _add_kernel[(triton.cdiv(x.size(0), TARGETS), triton.cdiv(x.size(1), width))](
            x,
            update,
            previous,
            out,
            split,
            *x.shape,
            IN_PLACE=x is out,
            TOTAL=total_type(x),
            TARGETS=TARGETS,
            CHANNELS=width,
        )


def collect_rows(grad: Tensor, previous: Tensor, split: int, rows: int) -> Tensor:
    """For each row of an update the sum of `grad[t]` over the targets that added it: `[rows, channels]`."""
    out = grad.new_zeros(rows, grad.size(1), dtype=part_type(grad))
    width = num_columns(grad)
    if grad.numel() and rows:
        with torch.cuda.device_of(grad):
            _collect_kernel[(triton.cdiv(grad.size(0), TARGETS), triton.cdiv(grad.size(1), width))](
                grad,
                previous,
                out,
                split,
                *grad.shape,
                TOTAL=total_type(grad),
                TARGETS=TARGETS,
                CHANNELS=width,
            )
    return out.to(grad.dtype)
