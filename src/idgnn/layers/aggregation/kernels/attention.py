r"""Attention over the messages of each target, which come in two lists: of plain and of colored sources.

Each list has launches of its own; what depends on both, a maximum or a sum for each target, is kept between them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.aggregation.kernels.sums import MESSAGES, MESSAGES_OF_HUBS, jit, weighted_sum


class Given(NamedTuple):
    """What the sources of one list of messages contribute to their scores."""

    gives: Tensor  # [sources, heads]
    source: Tensor  # [messages]
    ptr: Tensor  # [targets + 1]


@triton.jit
def _scores(gives, source, asked, message, there, head, heads, SLOPE: tl.constexpr):
    """The scores of some messages to one target; -inf where there is none."""
    row = tl.load(source + message, mask=there, other=0)
    score = tl.load(gives + row * heads + head, mask=there, other=0) + asked
    return tl.where(there, tl.where(score > 0, score, score * SLOPE), -float("inf"))


@jit("gives source ptr asks highest total heads")
def _totals_kernel(
    gives,
    source,
    ptr,
    asks,
    highest,
    total,
    heads,
    SLOPE: tl.constexpr,
    FIRST: tl.constexpr,
    MESSAGES: tl.constexpr,
):
    target, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cell = target * heads + head
    asked = tl.load(asks + cell)
    most, sum_ = asked * 0 - float("inf"), asked * 0
    if not FIRST:
        most, sum_ = tl.load(highest + cell), tl.load(total + cell)
    end = tl.load(ptr + target + 1)
    for first in range(tl.load(ptr + target), end, MESSAGES):
        message = first + tl.arange(0, MESSAGES)
        score = _scores(gives, source, asked, message, message < end, head, heads, SLOPE)
        higher = tl.maximum(most, tl.max(score, axis=0))
        sum_ = sum_ * tl.exp(most - higher) + tl.sum(tl.exp(score - higher), axis=0)
        most = higher
    tl.store(highest + cell, most)
    tl.store(total + cell, sum_)


@jit("gives source ptr asks highest total alpha heads")
def _alpha_kernel(gives, source, ptr, asks, highest, total, alpha, heads, SLOPE: tl.constexpr, MESSAGES: tl.constexpr):
    target, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cell = target * heads + head
    asked, most, sum_ = tl.load(asks + cell), tl.load(highest + cell), tl.load(total + cell)
    end = tl.load(ptr + target + 1)
    for first in range(tl.load(ptr + target), end, MESSAGES):
        message = first + tl.arange(0, MESSAGES)
        score = _scores(gives, source, asked, message, message < end, head, heads, SLOPE)
        tl.store(alpha + message * heads + head, tl.exp(score - most) / sum_, mask=message < end)


def attention(lists: list[Given], asks: Tensor, slope: float, hubs: bool = False) -> list[Tensor]:
    r"""The weights :math:`\textsc{Softmax}_s \textsc{LeakyReLU}(g_s + a_t)` of all messages, a tensor for each list."""
    highest, total = torch.empty_like(asks), torch.empty_like(asks)
    heads, tile = asks.size(1), MESSAGES_OF_HUBS if hubs else MESSAGES
    for number, each in enumerate(lists):
        with torch.cuda.device_of(asks):
            _totals_kernel[asks.shape](
                *each, asks, highest, total, heads, SLOPE=slope, FIRST=number == 0, MESSAGES=tile, num_warps=1
            )
    found = []
    for each in lists:
        alpha = asks.new_empty(each.source.numel(), heads)
        with torch.cuda.device_of(asks):
            _alpha_kernel[asks.shape](
                *each, asks, highest, total, alpha, heads, SLOPE=slope, MESSAGES=tile, num_warps=1
            )
        found.append(alpha)
    return found


@jit("alpha grad ptr inner heads")
def _inner_kernel(alpha, grad, ptr, inner, heads, FIRST: tl.constexpr, MESSAGES: tl.constexpr):
    target, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cell = target * heads + head
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    sum_ = tl.zeros([MESSAGES], dtype=inner.dtype.element_ty)
    for first in range(begin, end, MESSAGES):
        message = first + tl.arange(0, MESSAGES)
        place, there = message * heads + head, message < end
        sum_ += tl.load(alpha + place, mask=there, other=0) * tl.load(grad + place, mask=there, other=0)
    before = 0.0 if FIRST else tl.load(inner + cell)
    tl.store(inner + cell, before + tl.sum(sum_, axis=0))


@jit("gives source ptr asks alpha grad inner grad_score grad_asks heads")
def _backward_kernel(
    gives,
    source,
    ptr,
    asks,
    alpha,
    grad,
    inner,
    grad_score,
    grad_asks,
    heads,
    SLOPE: tl.constexpr,
    FIRST: tl.constexpr,
    MESSAGES: tl.constexpr,
):
    target, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cell = target * heads + head
    asked, mean = tl.load(asks + cell), tl.load(inner + cell)
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    sum_ = tl.zeros([MESSAGES], dtype=inner.dtype.element_ty)
    for first in range(begin, end, MESSAGES):
        message = first + tl.arange(0, MESSAGES)
        place, there = message * heads + head, message < end
        weight = tl.load(alpha + place, mask=there, other=0)
        change = weight * (tl.load(grad + place, mask=there, other=0) - mean)
        score = _scores(gives, source, asked, message, there, head, heads, SLOPE)
        change = tl.where(score > 0, change, change * SLOPE)  # LeakyReLU keeps the sign
        tl.store(grad_score + place, change, mask=there)
        sum_ += change
    before = 0.0 if FIRST else tl.load(grad_asks + cell)
    tl.store(grad_asks + cell, before + tl.sum(sum_, axis=0))


def attention_backward(
    lists: list[Given],
    back: list[tuple[Tensor, Tensor]],
    asks: Tensor,
    alphas: list[Tensor],
    grads: list[Tensor],
    slope: float,
    hubs: bool = False,
) -> tuple[list[Tensor], Tensor]:
    r"""The gradients :math:`\partial_g` for each list, and :math:`\partial_a`.

    With :math:`s_i` for the score of message `i`,

    .. math:: \partial_{s_i} = \alpha_i \big(\partial_{\alpha_i} - \textstyle\sum_j \alpha_j \partial_{\alpha_j}\big)

    which is summed over the messages of a source and of a target. `back` has, for each list, pointers and messages by
    source.
    """
    inner, grad_asks = torch.empty_like(asks), torch.empty_like(asks)
    heads, tile = asks.size(1), MESSAGES_OF_HUBS if hubs else MESSAGES
    for number, (each, alpha, grad) in enumerate(zip(lists, alphas, grads, strict=True)):
        with torch.cuda.device_of(asks):
            _inner_kernel[asks.shape](
                alpha, grad, each.ptr, inner, heads, FIRST=number == 0, MESSAGES=tile, num_warps=1
            )
    found = []
    for number, (each, (ptr, order), alpha, grad) in enumerate(zip(lists, back, alphas, grads, strict=True)):
        grad_score = torch.empty_like(alpha)
        with torch.cuda.device_of(asks):
            _backward_kernel[asks.shape](
                *each,
                asks,
                alpha,
                grad,
                inner,
                grad_score,
                grad_asks,
                heads,
                SLOPE=slope,
                FIRST=number == 0,
                MESSAGES=tile,
                num_warps=1,
            )
        found.append(weighted_sum(grad_score, order, ptr, hubs=hubs))
    return found, grad_asks
