"""Weighted sums over incoming messages, and their gradients."""

from __future__ import annotations

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.kernels.launch import MESSAGES, jit, num_columns, total_type


@jit("x weight source ptr out channels")
def _sum_kernel(
    x,
    weight,
    source,
    ptr,
    out,
    channels,
    WEIGHTED: tl.constexpr,
    TOTAL: tl.constexpr,
    MESSAGES: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    total = tl.zeros([CHANNELS], dtype=TOTAL)
    for first in range(begin, end, MESSAGES):
        message = first + tl.arange(0, MESSAGES)
        there = message < end
        row = tl.load(source + message, mask=there, other=0)
        here = there[:, None] & (column < channels)[None, :]
        value = tl.load(x + row[:, None] * channels + column[None, :], mask=here, other=0).to(TOTAL)
        if WEIGHTED:
            value = value * tl.load(weight + message, mask=there, other=0).to(TOTAL)[:, None]
        total += tl.sum(value, axis=0)
    tl.store(out + target * channels + column, total, mask=column < channels)


def weighted_sum(x: Tensor, weight: Tensor | None, source: Tensor, ptr: Tensor) -> Tensor:
    """For each target the sum of `weight[i] * x[source[i]]`."""
    x, num_targets = x.contiguous(), ptr.numel() - 1
    out = x.new_empty(num_targets, x.size(1))
    width = num_columns(x)
    if out.numel():
        with torch.cuda.device_of(x):
            _sum_kernel[(num_targets, triton.cdiv(x.size(1), width))](
                x,
                x if weight is None else weight.contiguous(),
                source,
                ptr,
                out,
                x.size(1),
                WEIGHTED=weight is not None,
                TOTAL=total_type(x),
                MESSAGES=MESSAGES,
                CHANNELS=width,
            )
    return out


@jit("x grad source ptr out channels")
def _products_kernel(
    x, grad, source, ptr, out, channels, TOTAL: tl.constexpr, MESSAGES: tl.constexpr, CHANNELS: tl.constexpr
):
    target = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
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


def products(x: Tensor, grad: Tensor, source: Tensor, ptr: Tensor) -> Tensor:
    """For each message the inner product of `x` at its source and `grad` at its target."""
    x, grad = x.contiguous(), grad.contiguous()
    out = x.new_empty(source.numel())
    if out.numel():
        with torch.cuda.device_of(x):
            _products_kernel[(ptr.numel() - 1,)](
                x, grad, source, ptr, out, x.size(1), TOTAL=total_type(x), MESSAGES=MESSAGES, CHANNELS=num_columns(x)
            )
    return out
