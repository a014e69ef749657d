"""Weighted sums over incoming messages."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from idgnn.identity.adjacency import groups
from idgnn.identity.schedule import Messages
from idgnn.layers.aggregation.dispatch import kernels_on, promote_dtypes
from idgnn.layers.aggregation.lists import TwoLists
from idgnn.layers.aggregation.operators import differentiable, operator


def gather_sum(
    x: Tensor,
    messages: Messages | TwoLists,
    weight: Tensor | None = None,
    *,
    edge_weight: Tensor | None = None,
    base: Tensor | None = None,
    own: Tensor | None = None,
    own_weight: float = 1.0,
) -> Tensor:
    r""":math:`\mathbf{y}_t = \mathbf{b}_t + c\, \mathbf{x}_{o(t)} + \sum_{s \to t} w_{st}\, \mathbf{x}_s`.

    Args:
        x: `[sources, channels]`.
        messages: Which source sends to which target.
        weight: Of each message `[messages]`, or for each head, which share the channels, `[messages, heads]`; `None`
            for ones. Of two lists, the weights of the second one are behind those of the first.
        edge_weight: In place of `weight`: of each edge of the original graph, followed by those of the self-loops.
        base: What is added to `[targets, channels]`; `None` for zeros. If it is `x` itself, its gradient is part of the
            same sum.
        own: A row of `x` that each target adds, its own state before the round `[targets]`.
        own_weight: The weight of that row.
    """
    itself, placed = base is x, edge_weight is not None
    if placed or weight is not None or not (itself or base is None):
        # bf16 messages under autocast are summed in float32 if they are weighted.
        x, weight, base = promote_dtypes(x, edge_weight if placed else weight, None if itself else base)
    base = None if itself else base
    first, more, split = messages if isinstance(messages, TwoLists) else (messages, None, 0)
    hubs = first.hubs or (more is not None and more.hubs)
    second = _NO_LIST if more is None or not more.source.numel() else _tensors(more, placed)
    return _gather_sum(x, weight, base, own, own_weight, itself, split, hubs, *_tensors(first, placed), *second)


def gather_sum_plain(
    x: Tensor,
    messages: Messages | TwoLists,
    weight: Tensor | None = None,
    *,
    edge_weight: Tensor | None = None,
    base: Tensor | None = None,
    own: Tensor | None = None,
    own_weight: float = 1.0,
) -> Tensor:
    """:func:`gather_sum`, message by message."""
    if isinstance(messages, TwoLists):
        lists, x_of = [messages.plain, messages.colored], [x[: messages.split], x[messages.split :]]
    else:
        lists, x_of = [messages], [x]
    out = base
    for each, rows in zip(lists, x_of, strict=True):
        taken = weight
        if edge_weight is not None:
            taken = edge_weight[each.edge]
        elif weight is not None:
            taken, weight = weight[: each.source.numel()], weight[each.source.numel() :]
        sent = rows[each.source]
        if taken is not None:
            heads = taken.unsqueeze(-1) if taken.dim() == 1 else taken
            sent = sent * heads.repeat_interleave(x.size(1) // heads.size(1), dim=1)
        total = sent.new_zeros(each.ptr.numel() - 1, x.size(1)).index_add(0, each.target, sent)
        out = total if out is None else out + total
    assert out is not None
    return out if own is None else out + own_weight * x[own]


_NO_LIST = (None,) * 6


def _tensors(messages: Messages, placed: bool) -> tuple[Tensor | None, ...]:
    back = messages.back
    place = messages.edge if placed else None
    return messages.source, messages.ptr, place, back.neighbor, back.ptr, back.edge


def _save(ctx: Any, inputs: Any, output: Tensor) -> None:
    x, weight, _, own, ctx.own_weight, ctx.itself, ctx.split, ctx.hubs, *lists = inputs
    ctx.num_sources = x.size(0)
    # The sources themselves are needed for gradients of weights alone.
    ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weight, own, *lists)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, own, *tensors = ctx.saved_tensors
    first, more = tensors[:6], tensors[6:]
    grad_x = grad_weight = None
    if ctx.needs_input_grad[0]:
        transposed = _transposed_twice if torch.is_grad_enabled() else _transposed
        grad_x = transposed(ctx, grad.contiguous(), weight, own, first, more)
    if ctx.needs_input_grad[1]:
        grad_weight = _of_weights(ctx, x, grad, weight, first, more)
    return grad_x, grad_weight, grad if ctx.needs_input_grad[2] else None, *(None,) * 17


def _transposed(ctx: Any, grad: Tensor, weight: Tensor | None, own: Tensor | None, first: Any, more: Any) -> Tensor:
    """Every source sums over its targets."""
    _, _, place, back_target, back_ptr, back_order = first
    _, _, more_place, more_target, more_ptr, more_order = more
    lists = back_target, back_ptr, place, back_order, more_target, more_ptr, more_place, more_order
    places = ctx.split, 0, ctx.hubs
    base = grad if ctx.itself else None
    found = _sum(grad, weight, base, None, 1.0, ctx.num_sources, *lists, *places, eager=ctx.eager)
    if own is None:
        return found
    change = grad if ctx.own_weight == 1 else grad * ctx.own_weight
    if grad.device.type == "cpu":  # many times faster than index_add_ there
        return found.scatter_add_(0, own.unsqueeze(-1).expand_as(change), change)
    return found.index_add_(0, own, change)


def _transposed_twice(
    ctx: Any, grad: Tensor, weight: Tensor | None, own: Tensor | None, first: Any, more: Any
) -> Tensor:
    """The same in a form that can be differentiated again."""
    parts, begin = [], 0
    for source, ptr, place, back_target, back_ptr, back_order in (first, more):
        if source is None:
            continue
        taken = weight
        if place is None and weight is not None:
            taken = weight[begin : begin + source.numel()]
        taken = None if taken is None else _in_order(taken, place, back_order)
        again = (back_target, back_ptr, None, source, ptr, torch.argsort(back_order))
        parts.append(_gather_sum(grad, taken, None, None, 1.0, False, 0, ctx.hubs, *again, *_NO_LIST))
        begin += source.numel()
    found = torch.cat(parts)
    if found.size(0) < ctx.num_sources:  # rows that send no messages
        found = torch.cat([found, found.new_zeros(ctx.num_sources - found.size(0), found.size(1))])
    found = found + grad if ctx.itself else found
    return found if own is None else found.index_add(0, own, grad, alpha=ctx.own_weight)


def _of_weights(ctx: Any, x: Tensor, grad: Tensor, weight: Tensor, first: Any, more: Any) -> Tensor:
    """The gradients of the weights: for each message an inner product."""
    heads = 1 if weight.dim() == 1 else weight.size(1)
    rows = [x] if more[0] is None else [x[: ctx.split], x[ctx.split :]]
    found = []
    for each, (source, ptr, *_) in zip(rows, (first, more), strict=False):
        if torch.is_grad_enabled():  # then it is differentiated again
            found.append(_products(each, grad, source, ptr, heads))
        else:
            found.append(_products_once(each, grad.contiguous(), source, ptr, heads, ctx.hubs, eager=ctx.eager))
    products = found[0] if len(found) == 1 else torch.cat(found)
    if first[2] is None:
        return products.view_as(weight)
    place = first[2] if len(found) == 1 else torch.cat([first[2], more[2]])
    return torch.zeros_like(weight).index_add(0, place, products.squeeze(-1))


def _fake_sum(x, weight, base, own, own_weight, rows, *rest):
    return x.new_empty(rows, x.size(1))


@operator("sum", _fake_sum)
def _sum(
    x: Tensor,
    weight: Tensor | None,
    base: Tensor | None,
    own: Tensor | None,
    own_weight: float,
    rows: int,
    source: Tensor,
    ptr: Tensor,
    place: Tensor | None,
    order: Tensor | None,
    more_source: Tensor | None,
    more_ptr: Tensor | None,
    more_place: Tensor | None,
    more_order: Tensor | None,
    first_row: int,
    offset: int,
    hubs: bool,
) -> Tensor:
    """Sums over one list of messages, or two, of which the second has results from row `first_row` on, and reads the
    rows of `x` from `offset` on. Message `i` has the weight `weight[place[order[i]]]`; an index that is `None` is left
    out."""
    if kernels := kernels_on(x.device):
        second = None
        if more_source is not None and more_ptr is not None:
            begin = 0 if place is not None else source.numel()
            second = kernels.Second(more_source, more_ptr, more_place, more_order, first_row, offset, begin)
        weights = kernels.Weights(weight, place, order)
        return kernels.weighted_sum(
            x, source, ptr, weights, base, hubs, rows=rows, second=second, own=own, own_weight=own_weight
        )
    assert more_source is None, "two lists are for kernels: elsewhere they are merged"
    if source.numel():
        if ptr.size(0) < rows + 1:  # rows that no message is from
            ptr = torch.cat([ptr, ptr[-1:].expand(rows + 1 - ptr.size(0))])
        out = _sum_in_bags(x, source, ptr, None if weight is None else _in_order(weight, place, order))
    else:
        out = x.new_zeros(rows, x.size(1))
    if base is not None:
        out.add_(base)
    return out if own is None else out.add_(x.index_select(0, own), alpha=own_weight)


def _fake_gather_sum(x, weight, base, own, own_weight, itself, split, hubs, source, ptr, *rest):
    return x.new_empty(ptr.size(0) - 1, x.size(1))


@differentiable("gather_sum", _fake_gather_sum, _save, _backward, wanted=3)
def _gather_sum(
    x: Tensor,
    weight: Tensor | None,
    base: Tensor | None,
    own: Tensor | None,
    own_weight: float,
    itself: bool,
    split: int,
    hubs: bool,
    source: Tensor,
    ptr: Tensor,
    place: Tensor | None,
    back_target: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
    more_source: Tensor | None,
    more_ptr: Tensor | None,
    more_place: Tensor | None,
    more_back_target: Tensor | None,
    more_back_ptr: Tensor | None,
    more_back_order: Tensor | None,
) -> Tensor:
    """:func:`gather_sum`, with `x` itself as the base if that is asked for. Message `i` of a list has the weight
    `weight[place[i]]`; without places, `weight[i]`."""
    lists = (source, ptr, place, None, more_source, more_ptr, more_place, None)
    return _sum(x, weight, x if itself else base, own, own_weight, ptr.size(0) - 1, *lists, 0, split, hubs, eager=True)


def _sum_in_bags(x: Tensor, source: Tensor, ptr: Tensor, weight: Tensor | None) -> Tensor:
    # Detached: otherwise embedding_bag prepares a backward of its own.
    x = x.detach()
    if weight is None or weight.dim() == 1 or weight.size(1) == 1:
        weight = None if weight is None else weight.detach().view(-1)
        return embedding_bag(source, x, ptr, mode="sum", per_sample_weights=weight, include_last_offset=True)
    heads = weight.size(1)
    parts = zip(x.split(x.size(1) // heads, dim=1), weight.detach().unbind(1), strict=True)
    return torch.cat([_sum_in_bags(each.contiguous(), source, ptr, one) for each, one in parts], dim=1)


def _in_order(weight: Tensor, place: Tensor | None, order: Tensor | None) -> Tensor:
    """The weight of each message."""
    # index_select: on a CPU it takes a fraction of the time of indexing with brackets.
    for index in (place, order):
        weight = weight if index is None else weight.index_select(0, index)
    return weight


def _products(x: Tensor, grad: Tensor, source: Tensor, ptr: Tensor, heads: int) -> Tensor:
    """For each message and head the inner product of `x` at its source and `grad` at its target."""
    target = groups(ptr, source.numel())
    product = x.index_select(0, source) * grad.index_select(0, target)
    return product.view(product.size(0), heads, x.size(1) // heads).sum(-1)


def _fake_products(x, grad, source, ptr, heads, hubs):
    return x.new_empty(source.size(0), heads)


@operator("products", _fake_products)
def _products_once(x: Tensor, grad: Tensor, source: Tensor, ptr: Tensor, heads: int, hubs: bool) -> Tensor:
    """:func:`_products`, without a gradient of its own."""
    if heads > 1:
        width = x.size(1) // heads
        parts = zip(x.split(width, dim=1), grad.split(width, dim=1), strict=True)
        found = [_products_once(a.contiguous(), b.contiguous(), source, ptr, 1, hubs, eager=True) for a, b in parts]
        return torch.cat(found, dim=1)
    if kernels := kernels_on(x.device):
        return kernels.products(x, grad, source, ptr, hubs).unsqueeze(-1)
    size, exact = (grad.size(0), x.size(0)), x.dtype in (torch.float32, torch.float64)
    if x.device.type == "cpu" and exact and x.size(1) and 0 < source.numel() <= size[0] * size[1]:
        # A product of two matrices at the given places alone: nothing is written out per message and channel.
        with warnings.catch_warnings(action="ignore"):  # PyTorch calls its sparse rows a beta feature, once a process
            places = torch.sparse_csr_tensor(ptr, source, x.new_zeros(source.numel()), size, check_invariants=False)
            return torch.sparse.sampled_addmm(places, grad, x.t(), beta=0, out=places).values().unsqueeze(-1)
    return _products(x, grad, source, ptr, 1)
