"""Maxima over incoming messages, and their gradients."""

from __future__ import annotations

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.aggregation.dispatch import pieces
from idgnn.layers.aggregation.kernels.sums import WARPS, jit, num_columns, part_type, total_type, weighted_sum


@jit("x source ptr base out winner channels")
def _max_kernel(x, source, ptr, base, out, winner, channels, BASED: tl.constexpr, CHANNELS: tl.constexpr):
    target = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    here, cell = column < channels, target * channels + column
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    best = tl.zeros([CHANNELS], dtype=x.dtype.element_ty)
    if BASED:
        best = tl.load(base + cell, mask=here, other=0)
    which = tl.full([CHANNELS], -1, dtype=tl.int64)
    for message in range(begin, end):
        row = tl.load(source + message)
        value = tl.load(x + row * channels + column, mask=here, other=0)
        better = (value > best) | (value != value)  # NaN wins, as in PyTorch
        if not BASED:
            better = better | (which < 0)
        best = tl.where(better, value, best)
        which = tl.where(better, message, which)
    tl.store(out + cell, best, mask=here)
    tl.store(winner + cell, which, mask=here)


def maximum(
    x: Tensor, source: Tensor, ptr: Tensor, base: Tensor | None = None, hubs: bool = False
) -> tuple[Tensor, Tensor]:
    """For each target the largest of `x[source[i]]` and of its row of `base` (0 if there are none), and the number of
    the message with it, -1 for the base or no message."""
    if hubs:
        each = pieces(ptr, source.numel())
        highest, winner = maximum(x, source, each.ptr)
        value, piece = maximum(highest, each.number, each.first, base)
        return value, torch.where(piece < 0, -1, winner.gather(0, piece.clamp(min=0).long()))
    x, num_targets = x.contiguous(), ptr.numel() - 1
    out = x.new_empty(num_targets, x.size(1))
    winner = torch.empty_like(out, dtype=torch.int32)
    width = num_columns(x)
    if out.numel():
        with torch.cuda.device_of(x):
            _max_kernel[(num_targets, triton.cdiv(x.size(1), width))](
                x,
                source,
                ptr,
                x if base is None else base.contiguous(),
                out,
                winner,
                x.size(1),
                BASED=base is not None,
                CHANNELS=width,
                num_warps=WARPS,
            )
    return out, winner


@jit("grad winner target order ptr out channels")
def _winners_kernel(grad, winner, target, order, ptr, out, channels, TOTAL: tl.constexpr, CHANNELS: tl.constexpr):
    source = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    here = column < channels
    begin, end = tl.load(ptr + source), tl.load(ptr + source + 1)
    total = tl.zeros([CHANNELS], dtype=TOTAL)
    for place in range(begin, end):
        cell = tl.load(target + place) * channels + column
        won = tl.load(winner + cell, mask=here, other=-1) == tl.load(order + place)
        total += tl.load(grad + cell, mask=won, other=0).to(TOTAL)
    tl.store(out + source * channels + column, total, mask=here)


def from_winners(
    grad: Tensor,
    winner: Tensor,
    target: Tensor,
    ptr: Tensor,
    order: Tensor,
    hubs: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """For each source the sum of the gradients of the maxima that its messages are; `dtype` as in `weighted_sum`."""
    dtype = dtype or grad.dtype
    if hubs:
        each = pieces(ptr, target.numel())
        parts = from_winners(grad, winner, target, each.ptr, order, dtype=part_type(grad))
        return weighted_sum(parts, each.number, each.first, dtype=dtype)
    grad, num_sources = grad.contiguous(), ptr.numel() - 1
    out = grad.new_empty(num_sources, grad.size(1), dtype=dtype)
    width = num_columns(grad)
    if out.numel():
        with torch.cuda.device_of(grad):
            _winners_kernel[(num_sources, triton.cdiv(grad.size(1), width))](
                grad,
                winner,
                target,
                order,
                ptr,
                out,
                grad.size(1),
                TOTAL=total_type(grad),
                CHANNELS=width,
                num_warps=WARPS,
            )
    return out
