"""Maxima over incoming messages, and their gradients."""

from __future__ import annotations

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.aggregation.dispatch import pieces
from idgnn.layers.aggregation.kernels.sums import WARPS, jit, num_columns, part_type, total_type, weighted_sum


@triton.jit
def _best_message(best, which, x, source, begin, end, offset, first, column, here, channels, nobody):
    """The largest of what it was and of the messages from `begin` to `end` of one list, and its number."""
    for message in range(begin, end):
        row = tl.load(source + message) + offset
        value = tl.load(x + row * channels + column, mask=here, other=0)
        better = (value > best) | (value != value) | (which == nobody)  # NaN wins, as in PyTorch
        best = tl.where(better, value, best)
        which = tl.where(better, message + first, which)
    return best, which


@jit("x source ptr more_source more_ptr out winner channels offset first nobody")
def _max_kernel(
    x,
    source,
    ptr,
    more_source,
    more_ptr,
    out,
    winner,
    channels,
    offset,
    first,
    nobody,
    TWO: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    here, cell = column < channels, target * channels + column
    best = tl.zeros([CHANNELS], dtype=x.dtype.element_ty)
    which = tl.zeros([CHANNELS], dtype=tl.int64) + nobody
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    best, which = _best_message(best, which, x, source, begin, end, 0, 0, column, here, channels, nobody)
    if TWO:
        begin, end = tl.load(more_ptr + target), tl.load(more_ptr + target + 1)
        best, which = _best_message(
            best, which, x, more_source, begin, end, offset, first, column, here, channels, nobody
        )
    tl.store(out + cell, best, mask=here)
    tl.store(winner + cell, which, mask=here)


def maximum(
    x: Tensor,
    source: Tensor,
    ptr: Tensor,
    more_source: Tensor | None = None,
    more_ptr: Tensor | None = None,
    split: int = 0,
    hubs: bool = False,
) -> tuple[Tensor, Tensor]:
    """For each target the largest of `x[source[i]]`, and of a second list that of `x[split + more_source[i]]`, and the
    number of the message with it, counted over both lists; for none of them 0 and the number of all messages."""
    if hubs:
        return _maximum_of_pieces(x, source, ptr, more_source, more_ptr, split)
    x, num_targets, number = x.contiguous(), ptr.numel() - 1, source.numel()
    out = x.new_empty(num_targets, x.size(1))
    winner = torch.empty_like(out, dtype=torch.int32)
    width, two = num_columns(x), more_source is not None
    if out.numel():
        with torch.cuda.device_of(x):
            _max_kernel[(num_targets, triton.cdiv(x.size(1), width))](
                x,
                source,
                ptr,
                more_source if two else source,
                more_ptr if two else ptr,
                out,
                winner,
                x.size(1),
                split,
                number,
                number + (more_source.numel() if more_source is not None else 0),
                TWO=two,
                CHANNELS=width,
                num_warps=WARPS,
            )
    return out, winner


def _maximum_of_pieces(
    x: Tensor, source: Tensor, ptr: Tensor, more_source: Tensor | None, more_ptr: Tensor | None, split: int
) -> tuple[Tensor, Tensor]:
    """The same where there are hubs: one list after the other, in pieces."""
    if more_source is not None and more_ptr is not None:
        value, winner = _maximum_of_pieces(x, source, ptr, None, None, 0)
        best, which = _maximum_of_pieces(x[split:], more_source, more_ptr, None, None, 0)
        none, number = winner == source.numel(), source.numel()
        better = ((best > value) | best.isnan() | none) & (which < more_source.numel())
        winner = torch.where(none, number + more_source.numel(), winner)
        return torch.where(better, best, value), torch.where(better, which + number, winner)
    each = pieces(ptr, source.numel())
    highest, winner = maximum(x, source, each.ptr)
    value, piece = maximum(highest, each.number, each.first)
    none = piece == each.number.numel()
    if not each.number.numel():
        return value, piece
    return value, torch.where(none, source.numel(), winner.gather(0, piece.masked_fill(none, 0).long()))


@jit("grad winner target order ptr more_target more_order more_ptr out channels last_row first")
def _winners_kernel(
    grad,
    winner,
    target,
    order,
    ptr,
    more_target,
    more_order,
    more_ptr,
    out,
    channels,
    last_row,
    first,
    TWO: tl.constexpr,
    TOTAL: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    source = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    here = column < channels
    inside = source < last_row
    begin, end = tl.load(ptr + source, mask=inside, other=0), tl.load(ptr + source + 1, mask=inside, other=0)
    total = tl.zeros([CHANNELS], dtype=TOTAL)
    for place in range(begin, end):
        cell = tl.load(target + place) * channels + column
        won = tl.load(winner + cell, mask=here, other=-1) == tl.load(order + place)
        total += tl.load(grad + cell, mask=won, other=0).to(TOTAL)
    if TWO:
        inside, row = source >= last_row, source - last_row
        begin, end = tl.load(more_ptr + row, mask=inside, other=0), tl.load(more_ptr + row + 1, mask=inside, other=0)
        for place in range(begin, end):
            cell = tl.load(more_target + place) * channels + column
            won = tl.load(winner + cell, mask=here, other=-1) == tl.load(more_order + place) + first
            total += tl.load(grad + cell, mask=won, other=0).to(TOTAL)
    tl.store(out + source * channels + column, total, mask=here)


def from_winners(
    grad: Tensor,
    winner: Tensor,
    back: tuple[Tensor, Tensor, Tensor],
    more: tuple[Tensor, Tensor, Tensor] | None = None,
    rows: int | None = None,
    hubs: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """For each source the sum of the gradients of the maxima that its messages are.

    `back` has the target, the pointers and the number of the messages of each source, `more` those of the sources
    behind them, whose messages are counted behind the others; `dtype` and `rows` as in `weighted_sum`.
    """
    (target, ptr, order), dtype = back, dtype or grad.dtype
    rows = ptr.numel() - 1 if rows is None else rows
    if hubs:
        lists = [(target, ptr, order)]
        if more is not None:
            lists.append((more[0], more[1], more[2] + target.numel()))
        found = []
        for target, ptr, order in lists:
            each = pieces(ptr, target.numel())
            parts = from_winners(grad, winner, (target, each.ptr, order), dtype=part_type(grad))
            found.append(weighted_sum(parts, each.number, each.first, dtype=dtype))
        missing = rows - sum(each.size(0) for each in found)
        return torch.cat([*found, grad.new_zeros(missing, grad.size(1), dtype=dtype)])
    grad = grad.contiguous()
    out = grad.new_empty(rows, grad.size(1), dtype=dtype)
    width = num_columns(grad)
    more_target, more_ptr, more_order = back if more is None else more
    if out.numel():
        with torch.cuda.device_of(grad):
            _winners_kernel[(rows, triton.cdiv(grad.size(1), width))](
                grad,
                winner,
                target,
                order,
                ptr,
                more_target,
                more_order,
                more_ptr,
                out,
                grad.size(1),
                ptr.numel() - 1,
                target.numel(),
                TWO=more is not None,
                TOTAL=total_type(grad),
                CHANNELS=width,
                num_warps=WARPS,
            )
    return out
