r"""Attention and the sum that it weights, over the messages of each target, in one launch, and gradients in two.

A row of `scores` has, for each head, what the row gives to the scores of its messages and what it adds to those that it
receives: `[rows, 2 * heads]`. Messages may come in two lists, of plain and of colored sources.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from idgnn.layers.aggregation.kernels.sums import MESSAGES, WARPS, jit


class Lists(NamedTuple):
    """One list of messages, or two, the sources of which are counted from row `split` on."""

    source: Tensor
    ptr: Tensor
    more_source: Tensor | None
    more_ptr: Tensor | None
    split: int

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Those of the first list in place of a second one that is not there."""
        if self.more_source is None or self.more_ptr is None:
            return self.source, self.ptr, self.source, self.ptr
        return self.source, self.ptr, self.more_source, self.more_ptr

    @property
    def size(self) -> int:
        """The number of messages."""
        return self.source.numel() + (0 if self.more_source is None else self.more_source.numel())


@triton.jit
def _leaky(score, SLOPE: tl.constexpr):
    return tl.where(score > 0, score, score * SLOPE)


@triton.jit
def _sum_of_exponentials(
    most, sum_, scores, source, begin, end, offset, own_score, head, heads, SLOPE: tl.constexpr, MESSAGES: tl.constexpr
):
    """The highest score and the sum of exponentials less it, of what was before and of one list."""
    for first in range(begin, end, MESSAGES):
        message = first + tl.arange(0, MESSAGES)
        row = tl.load(source + message, mask=message < end, other=0) + offset
        score = _leaky(tl.load(scores + (row * heads + head) * 2, mask=message < end, other=0) + own_score, SLOPE)
        score = tl.where(message < end, score, -float("inf"))
        higher = tl.maximum(most, tl.max(score, axis=0))
        sum_ = sum_ * tl.exp(most - higher) + tl.sum(tl.exp(score - higher), axis=0)
        most = higher
    return most, sum_


@triton.jit
def _add_weighted(
    total,
    most,
    sum_,
    sent,
    scores,
    source,
    alpha,
    begin,
    end,
    offset,
    number,
    own_score,
    head,
    heads,
    channels,
    place,
    here,
    is_first,
    SLOPE: tl.constexpr,
):
    """Adds the messages of one list, and stores their weights."""
    for message in range(begin, end):
        row = tl.load(source + message) + offset
        score = _leaky(tl.load(scores + (row * heads + head) * 2) + own_score, SLOPE)
        weight = tl.exp(score - most) / sum_
        tl.store(alpha + (message + number) * heads + head, weight, mask=is_first)
        total += weight * tl.load(sent + row * channels + place, mask=here, other=0)
    return total


@jit("sent scores own source ptr more_source more_ptr out alpha channels heads offset number")
def _attend_kernel(
    sent,
    scores,
    own,
    source,
    ptr,
    more_source,
    more_ptr,
    out,
    alpha,
    channels,
    heads,
    offset,
    number,
    SLOPE: tl.constexpr,
    TWO: tl.constexpr,
    MESSAGES: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    width = channels // heads
    column = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
    here, place, is_first = column < width, head * width + column, tl.program_id(2) == 0
    own_score = tl.load(scores + (tl.load(own + target) * heads + head) * 2 + 1)
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    more_begin, more_end = begin, begin
    most, sum_ = own_score * 0 - float("inf"), own_score * 0
    most, sum_ = _sum_of_exponentials(
        most, sum_, scores, source, begin, end, 0, own_score, head, heads, SLOPE, MESSAGES
    )
    if TWO:
        more_begin, more_end = tl.load(more_ptr + target), tl.load(more_ptr + target + 1)
        most, sum_ = _sum_of_exponentials(
            most, sum_, scores, more_source, more_begin, more_end, offset, own_score, head, heads, SLOPE, MESSAGES
        )
    total = tl.zeros([CHANNELS], dtype=out.dtype.element_ty)
    total = _add_weighted(
        total,
        most,
        sum_,
        sent,
        scores,
        source,
        alpha,
        begin,
        end,
        0,
        0,
        own_score,
        head,
        heads,
        channels,
        place,
        here,
        is_first,
        SLOPE,
    )
    if TWO:
        total = _add_weighted(
            total,
            most,
            sum_,
            sent,
            scores,
            more_source,
            alpha,
            more_begin,
            more_end,
            offset,
            number,
            own_score,
            head,
            heads,
            channels,
            place,
            here,
            is_first,
            SLOPE,
        )
    tl.store(out + target * channels + place, total, mask=here)


def attend(sent: Tensor, scores: Tensor, own: Tensor, lists: Lists, slope: float) -> tuple[Tensor, Tensor]:
    r""":math:`\sum_s \alpha_{st} \mathbf{x}_s` with :math:`\alpha_{st} = \textsc{Softmax}_s
    \textsc{LeakyReLU}(g_s + a_t)`, and these weights `[messages, heads]`, those of the second list last.

    `own` is the row that each target's :math:`a_t` is from.
    """
    targets, channels, heads = lists.ptr.numel() - 1, sent.size(1), scores.size(1) // 2
    out, alpha = sent.new_empty(targets, channels), sent.new_empty(lists.size, heads)
    width = _columns(channels // heads)
    if out.numel():
        with torch.cuda.device_of(sent):
            _attend_kernel[(targets, heads, triton.cdiv(channels // heads, width))](
                sent,
                scores,
                own,
                *lists.tensors,
                out,
                alpha,
                channels,
                heads,
                lists.split,
                lists.source.numel(),
                SLOPE=slope,
                TWO=lists.more_source is not None,
                MESSAGES=MESSAGES,
                CHANNELS=width,
                num_warps=WARPS,
            )
    return out, alpha


@triton.jit
def _score_gradients(
    total,
    mean,
    sent,
    scores,
    source,
    alpha,
    grad,
    grad_score,
    begin,
    end,
    offset,
    number,
    own_score,
    target,
    head,
    heads,
    channels,
    SLOPE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Stores the gradients of the scores of one list, and adds them up."""
    width = channels // heads
    for message in range(begin, end):
        row = tl.load(source + message) + offset
        inner = tl.zeros([CHANNELS], dtype=grad_score.dtype.element_ty)
        for left in range(0, width, CHANNELS):
            column = left + tl.arange(0, CHANNELS)
            here, place = column < width, head * width + column
            value = tl.load(sent + row * channels + place, mask=here, other=0)
            inner += value * tl.load(grad + target * channels + place, mask=here, other=0)
        cell = (message + number) * heads + head
        change = tl.load(alpha + cell) * (tl.sum(inner, axis=0) - mean)
        score = tl.load(scores + (row * heads + head) * 2) + own_score
        change = tl.where(score > 0, change, change * SLOPE)
        tl.store(grad_score + cell, change)
        total += change
    return total


@jit("sent scores own source ptr more_source more_ptr out alpha grad grad_score grad_asks channels heads offset number")
def _attend_scores_kernel(
    sent,
    scores,
    own,
    source,
    ptr,
    more_source,
    more_ptr,
    out,
    alpha,
    grad,
    grad_score,
    grad_asks,
    channels,
    heads,
    offset,
    number,
    SLOPE: tl.constexpr,
    TWO: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    width = channels // heads
    inner = tl.zeros([CHANNELS], dtype=grad_score.dtype.element_ty)
    for left in range(0, width, CHANNELS):
        column = left + tl.arange(0, CHANNELS)
        cell = target * channels + head * width + column
        inner += tl.load(out + cell, mask=column < width, other=0) * tl.load(grad + cell, mask=column < width, other=0)
    mean = tl.sum(inner, axis=0)
    own_score = tl.load(scores + (tl.load(own + target) * heads + head) * 2 + 1)
    begin, end = tl.load(ptr + target), tl.load(ptr + target + 1)
    total = _score_gradients(
        own_score * 0,
        mean,
        sent,
        scores,
        source,
        alpha,
        grad,
        grad_score,
        begin,
        end,
        0,
        0,
        own_score,
        target,
        head,
        heads,
        channels,
        SLOPE,
        CHANNELS,
    )
    if TWO:
        begin, end = tl.load(more_ptr + target), tl.load(more_ptr + target + 1)
        total = _score_gradients(
            total,
            mean,
            sent,
            scores,
            more_source,
            alpha,
            grad,
            grad_score,
            begin,
            end,
            offset,
            number,
            own_score,
            target,
            head,
            heads,
            channels,
            SLOPE,
            CHANNELS,
        )
    tl.store(grad_asks + target * heads + head, total)


@triton.jit
def _from_targets(
    total, give, grad, alpha, grad_score, target, order, begin, end, number, head, heads, channels, place, here
):
    """Adds what the targets of one list send back to a source."""
    for position in range(begin, end):
        cell = (tl.load(order + position) + number) * heads + head
        row = tl.load(target + position)
        total += tl.load(alpha + cell) * tl.load(grad + row * channels + place, mask=here, other=0)
        give += tl.load(grad_score + cell)
    return total, give


@jit(
    "grad alpha grad_score target ptr order more_target more_ptr more_order grad_sent grad_scores channels heads "
    "last_row number"
)
def _attend_sources_kernel(
    grad,
    alpha,
    grad_score,
    target,
    ptr,
    order,
    more_target,
    more_ptr,
    more_order,
    grad_sent,
    grad_scores,
    channels,
    heads,
    last_row,
    number,
    TWO: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    source, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    width = channels // heads
    column = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
    here, place, is_first = column < width, head * width + column, tl.program_id(2) == 0
    total = tl.zeros([CHANNELS], dtype=grad_sent.dtype.element_ty)
    give = tl.sum(total, axis=0)
    inside = source < last_row
    begin, end = tl.load(ptr + source, mask=inside, other=0), tl.load(ptr + source + 1, mask=inside, other=0)
    total, give = _from_targets(
        total, give, grad, alpha, grad_score, target, order, begin, end, 0, head, heads, channels, place, here
    )
    if TWO:
        inside, row = source >= last_row, source - last_row
        begin, end = tl.load(more_ptr + row, mask=inside, other=0), tl.load(more_ptr + row + 1, mask=inside, other=0)
        total, give = _from_targets(
            total,
            give,
            grad,
            alpha,
            grad_score,
            more_target,
            more_order,
            begin,
            end,
            number,
            head,
            heads,
            channels,
            place,
            here,
        )
    tl.store(grad_sent + source * channels + place, total, mask=here)
    cell = (source * heads + head) * 2
    tl.store(grad_scores + cell, give, mask=is_first)
    tl.store(grad_scores + cell + 1, give * 0, mask=is_first)


def attend_backward(
    sent: Tensor,
    scores: Tensor,
    own: Tensor,
    lists: Lists,
    back: tuple[Tensor, Tensor, Tensor],
    more_back: tuple[Tensor, Tensor, Tensor] | None,
    out: Tensor,
    alpha: Tensor,
    grad: Tensor,
    slope: float,
) -> tuple[Tensor, Tensor]:
    r"""The gradients of `sent` and of `scores`.

    With :math:`s_i` for the score of message `i`, from source `s` to target `t`,

    .. math:: \partial_{s_i} = \alpha_i \big(\partial_{\mathbf{y}_t}^\top \mathbf{x}_s
        - \partial_{\mathbf{y}_t}^\top \mathbf{y}_t\big)

    because :math:`\mathbf{y}_t` is the mean of its :math:`\mathbf{x}_s` by attention. `back` has the targets, the
    pointers and the numbers of the messages by source.
    """
    targets, channels, heads = lists.ptr.numel() - 1, sent.size(1), scores.size(1) // 2
    grad_score, grad_asks = torch.empty_like(alpha), alpha.new_empty(targets, heads)
    grad_sent, grad_scores = torch.empty_like(sent), torch.empty_like(scores)
    width, two = _columns(channels // heads), more_back is not None
    sizes = (channels, heads)
    with torch.cuda.device_of(sent):
        if grad_asks.numel():
            _attend_scores_kernel[(targets, heads)](
                sent,
                scores,
                own,
                *lists.tensors,
                out,
                alpha,
                grad,
                grad_score,
                grad_asks,
                *sizes,
                lists.split,
                lists.source.numel(),
                SLOPE=slope,
                TWO=two,
                CHANNELS=width,
                num_warps=1,  # which adds up its inner products without the others
            )
        if grad_sent.numel():
            _attend_sources_kernel[(sent.size(0), heads, triton.cdiv(channels // heads, width))](
                grad,
                alpha,
                grad_score,
                *back,
                *(more_back or back),
                grad_sent,
                grad_scores,
                *sizes,
                back[1].numel() - 1,
                lists.source.numel(),
                TWO=two,
                CHANNELS=width,
                num_warps=WARPS,
            )
    grad_scores.view(-1, heads, 2)[..., 1].index_add_(0, own, grad_asks)
    return grad_sent, grad_scores


def _columns(width: int) -> int:
    """How many channels of a head a program computes at once."""
    return min(max(triton.next_power_of_2(width), 16), 256)
