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
    """Message `i` has the weight `weight[place[order[i]]]`; whatever is `None` is left out, `weight` for ones. A weight
    `[messages, heads]` is one for each head, which share the channels."""

    weight: Tensor | None = None
    place: Tensor | None = None
    order: Tensor | None = None


ONES = Weights()


class Second(NamedTuple):
    """A second list of messages. Their weights, unless they have places, begin at `begin`."""

    source: Tensor  # [messages] counted from row `offset` of `x` on
    ptr: Tensor
    place: Tensor | None
    order: Tensor | None
    first_row: int  # of the results that they are added to
    offset: int
    begin: int


@triton.jit
def _add_messages(
    total,
    x,
    weight,
    place,
    order,
    source,
    begin,
    end,
    offset,
    first_weight,
    column,
    here,
    channels,
    heads,
    WEIGHTED: tl.constexpr,
    PLACED: tl.constexpr,
    ORDERED: tl.constexpr,
    TOTAL: tl.constexpr,
):
    """Adds the messages from `begin` to `end` of one list."""
    for message in range(begin, end):
        row = tl.load(source + message) + offset
        value = tl.load(x + row * channels + column, mask=here, other=0).to(TOTAL)
        if WEIGHTED:
            which = message
            if ORDERED:
                which = tl.load(order + which)
            if PLACED:
                which = tl.load(place + which)
            head = column // (channels // heads)
            value = value * tl.load(weight + (which + first_weight) * heads + head, mask=here, other=0).to(TOTAL)
        total += value
    return total


@jit(
    "x weight place order source ptr more_place more_order more_source more_ptr base own out channels heads last_row "
    "first_row offset begin"
)
def _sum_kernel(
    x,
    weight,
    place,
    order,
    source,
    ptr,
    more_place,
    more_order,
    more_source,
    more_ptr,
    base,
    own,
    out,
    channels,
    heads,
    last_row,
    first_row,
    offset,
    begin,
    WEIGHTED: tl.constexpr,
    PLACED: tl.constexpr,
    ORDERED: tl.constexpr,
    TWO: tl.constexpr,
    BASED: tl.constexpr,
    OWN: tl.constexpr,
    OWN_WEIGHT: tl.constexpr,  # not an argument, which would be rounded to 32 bits
    TOTAL: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    target = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    here, cell = column < channels, target * channels + column
    total = tl.zeros([CHANNELS], dtype=TOTAL)
    if BASED:
        total += tl.load(base + cell, mask=here, other=0).to(TOTAL)
    if OWN:
        row = tl.load(own + target)
        total += tl.load(x + row * channels + column, mask=here, other=0).to(TOTAL) * OWN_WEIGHT
    inside = target < last_row
    first, last = tl.load(ptr + target, mask=inside, other=0), tl.load(ptr + target + 1, mask=inside, other=0)
    total = _add_messages(
        total,
        x,
        weight,
        place,
        order,
        source,
        first,
        last,
        0,
        0,
        column,
        here,
        channels,
        heads,
        WEIGHTED,
        PLACED,
        ORDERED,
        TOTAL,
    )
    if TWO:
        target = target - first_row
        inside = target >= 0
        first = tl.load(more_ptr + target, mask=inside, other=0)
        last = tl.load(more_ptr + target + 1, mask=inside, other=0)
        total = _add_messages(
            total,
            x,
            weight,
            more_place,
            more_order,
            more_source,
            first,
            last,
            offset,
            begin,
            column,
            here,
            channels,
            heads,
            WEIGHTED,
            PLACED,
            ORDERED,
            TOTAL,
        )
    tl.store(out + cell, total, mask=here)


def weighted_sum(
    x: Tensor,
    source: Tensor,
    ptr: Tensor,
    weights: Weights = ONES,
    base: Tensor | None = None,
    hubs: bool = False,
    dtype: torch.dtype | None = None,
    *,
    rows: int | None = None,
    second: Second | None = None,
    own: Tensor | None = None,
    own_weight: float = 1.0,
) -> Tensor:
    """For each target the sum of its messages `x[source[i]]`, weighted, of those of a second list, of its row of `base`
    and of the row of `x` that is its `own`.

    `dtype` is that of the result, unless given that of `x`; `rows` is the number of results, unless given that of the
    pointers.
    """
    rows, dtype = ptr.numel() - 1 if rows is None else rows, dtype or x.dtype
    if hubs:
        return _sum_of_pieces(x, source, ptr, weights, base, dtype, rows, second, own, own_weight)
    x = x.contiguous()
    out = x.new_empty(rows, x.size(1), dtype=dtype)
    if out.numel() == 0:
        return out
    width, (weight, place, order) = num_columns(x), weights
    more_source, more_ptr, more_place, more_order, *numbers = second or (source, ptr, place, order, 0, 0, 0)
    with torch.cuda.device_of(x):
        _sum_kernel[(rows, triton.cdiv(x.size(1), width))](
            x,
            x if weight is None else weight.contiguous(),
            source if place is None else place,
            source if order is None else order,
            source,
            ptr,
            source if more_place is None else more_place,
            source if more_order is None else more_order,
            more_source,
            more_ptr,
            x if base is None else base.contiguous(),
            source if own is None else own,
            out,
            x.size(1),
            1 if weight is None or weight.dim() == 1 else weight.size(1),
            ptr.numel() - 1,
            *numbers,
            WEIGHTED=weight is not None,
            PLACED=place is not None,
            ORDERED=order is not None,
            TWO=second is not None,
            BASED=base is not None,
            OWN=own is not None,
            OWN_WEIGHT=own_weight,
            TOTAL=total_type(x),
            CHANNELS=width,
            num_warps=WARPS,
        )
    return out


def _sum_of_pieces(
    x: Tensor,
    source: Tensor,
    ptr: Tensor,
    weights: Weights,
    base: Tensor | None,
    dtype: torch.dtype,
    rows: int,
    second: Second | None,
    own: Tensor | None,
    own_weight: float,
) -> Tensor:
    """The same where there are hubs: one list after the other, in pieces."""
    if second is not None:
        weight = weights.weight
        if weight is not None and second.place is None:
            weight = weight[second.begin :]
        more = Weights(weight, second.place, second.order)
        sent = x[second.offset :], second.source, second.ptr, more
        first = weighted_sum(x, source, ptr, weights, base, True, dtype, own=own, own_weight=own_weight)
        if second.first_row == 0:
            return weighted_sum(*sent, first, True, dtype)
        return torch.cat([first, weighted_sum(*sent, None, True, dtype)])
    if own is not None:
        state = x.index_select(0, own).to(dtype)
        base = own_weight * state if base is None else torch.add(base, state, alpha=own_weight)
    each = pieces(ptr, source.numel())
    parts = weighted_sum(x, source, each.ptr, weights, dtype=part_type(x))
    found = weighted_sum(parts, each.number, each.first, base=base, dtype=dtype)
    return found if found.size(0) == rows else torch.cat([found, found.new_zeros(rows - found.size(0), x.size(1))])


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
