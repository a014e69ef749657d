"""Weighted sums over incoming messages and their gradients, and how all kernels are compiled and launched."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.aggregation.dispatch import pieces

MESSAGES = 8  # of a target that a program reads at once, where it does; most targets have fewer
MESSAGES_OF_HUBS = 256  # the same where some targets have thousands
WARPS = 2  # of a program for one target and all channels


def jit(names: str) -> Any:
    """Compiles a kernel whose arguments have these names, once for all their values and alignments."""
    return triton.jit(do_not_specialize=names.split(), do_not_specialize_on_alignment=names.split())


def num_columns(x: Tensor) -> int:
    """How many channels a program computes."""
    return min(max(triton.next_power_of_2(x.size(1)), 16), 256)


def part_type(x: Tensor) -> torch.dtype:
    """The dtype of sums of some messages, to which others are added."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def total_type(x: Tensor) -> Any:
    """The same inside a kernel."""
    return tl.float64 if part_type(x) == torch.float64 else tl.float32


class Weights(NamedTuple):
    """Message `i` has the weight `weight[place[order[i]]]`; whatever is `None` is left out, `weight` for ones."""

    weight: Tensor | None = None
    place: Tensor | None = None
    order: Tensor | None = None


ONES = Weights()


@jit("x weight place order source ptr base out channels")
def _sum_kernel(
    x,
    weight,
    place,
    order,
    source,
    ptr,
    base,
    out,
    channels,
    WEIGHTED: tl.constexpr,
    PLACED: tl.constexpr,
    ORDERED: tl.constexpr,
    BASED: tl.constexpr,
    TOTAL: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    here, cell = column < channels, target * channels + column
    total = tl.zeros([CHANNELS], dtype=TOTAL)
    if BASED:
        total += tl.load(base + cell, mask=here, other=0).to(TOTAL)
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    for message in range(begin, end):
        row = tl.load(source + message)
        value = tl.load(x + row * channels + column, mask=here, other=0).to(TOTAL)
        if WEIGHTED:
            which = message
            if ORDERED:
                which = tl.load(order + which)
            if PLACED:
                which = tl.load(place + which)
            value = value * tl.load(weight + which).to(TOTAL)
        total += value
    tl.store(out + cell, total, mask=here)


def weighted_sum(
    x: Tensor,
    source: Tensor,
    ptr: Tensor,
    weights: Weights = ONES,
    base: Tensor | None = None,
    hubs: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """For each target the sum of its messages `x[source[i]]`, weighted, and of its row of `base`; `dtype` is that of
    the result, unless given that of `x`."""
    dtype = dtype or x.dtype
    if hubs:
        each = pieces(ptr, source.numel())
        parts = weighted_sum(x, source, each.ptr, weights, dtype=part_type(x))
        return weighted_sum(parts, each.number, each.first, base=base, dtype=dtype)
    x, num_targets = x.contiguous(), ptr.numel() - 1
    out = x.new_empty(num_targets, x.size(1), dtype=dtype)
    width = num_columns(x)
    weight, place, order = weights
    if out.numel():
        with torch.cuda.device_of(x):
            _sum_kernel[(num_targets, triton.cdiv(x.size(1), width))](
                x,
                x if weight is None else weight.contiguous(),
                source if place is None else place,
                source if order is None else order,
                source,
                ptr,
                x if base is None else base.contiguous(),
                out,
                x.size(1),
                WEIGHTED=weight is not None,
                PLACED=place is not None,
                ORDERED=order is not None,
                BASED=base is not None,
                TOTAL=total_type(x),
                CHANNELS=width,
                num_warps=WARPS,
            )
    return out


@jit("x grad source ptr owner out channels")
def _products_kernel(
    x,
    grad,
    source,
    ptr,
    owner,
    out,
    channels,
    OWNED: tl.constexpr,
    TOTAL: tl.constexpr,
    MESSAGES: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    if OWNED:
        target = tl.load(owner + target)
    for first in range(begin, end, MESSAGES):
        message = first + tl.arange(0, MESSAGES)
        there = message < end
        row = tl.load(source + message, mask=there, other=0)
        total = tl.zeros([MESSAGES], dtype=TOTAL)
        for left in range(0, channels, CHANNELS):
            column = left + tl.arange(0, CHANNELS)
            here = there[:, None] & (column < channels)[None, :]
            value = tl.load(x + row[:, None] * channels + column[None, :], mask=here, other=0).to(TOTAL)
            towards = tl.load(grad + target * channels + column, mask=column < channels, other=0).to(TOTAL)
            total += tl.sum(value * towards[None, :], axis=1)
        tl.store(out + message, total, mask=there)


def products(x: Tensor, grad: Tensor, source: Tensor, ptr: Tensor, hubs: bool = False) -> Tensor:
    """For each message the inner product of `x` at its source and `grad` at its target."""
    x, grad, owner = x.contiguous(), grad.contiguous(), None
    if hubs:
        each = pieces(ptr, source.numel())
        ptr, owner = each.ptr, each.owner
    out = x.new_empty(source.numel())
    if out.numel():
        with torch.cuda.device_of(x):
            _products_kernel[(ptr.numel() - 1,)](
                x,
                grad,
                source,
                ptr,
                source if owner is None else owner,
                out,
                x.size(1),
                OWNED=owner is not None,
                TOTAL=total_type(x),
                MESSAGES=MESSAGES,
                CHANNELS=num_columns(x),
            )
    return out
