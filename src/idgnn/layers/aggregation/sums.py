"""Weighted sums over incoming messages."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from idgnn.identity.adjacency import groups
from idgnn.identity.schedule import Messages
from idgnn.layers.aggregation.dispatch import kernels_on, promote_dtypes


def gather_sum(
    x: Tensor,
    messages: Messages,
    weight: Tensor | None = None,
    *,
    edge_weight: Tensor | None = None,
    base: Tensor | None = None,
) -> Tensor:
    r""":math:`\mathbf{y}_t = \mathbf{b}_t + \sum_{s \to t} w_{st}\, \mathbf{x}_s`.

    Args:
        x: `[sources, channels]`.
        messages: Which source sends to which target.
        weight: Of each message `[messages]`; `None` for ones.
        edge_weight: In place of `weight`: of each edge of the original graph, followed by those of the self-loops.
        base: What is added to `[targets, channels]`; `None` for zeros.
    """
    place = None if edge_weight is None else messages.edge
    # bf16 messages under autocast are summed in float32 if they are weighted.
    x, weight, base = promote_dtypes(x, weight if edge_weight is None else edge_weight, base)
    back = messages.back
    ways = (messages.source, messages.ptr, back.neighbor, back.ptr, back.edge)
    return _gather_sum(x, weight, place, None, base, *ways, messages.hubs)


def gather_sum_plain(
    x: Tensor,
    messages: Messages,
    weight: Tensor | None = None,
    *,
    edge_weight: Tensor | None = None,
    base: Tensor | None = None,
) -> Tensor:
    """:func:`gather_sum`, message by message."""
    if edge_weight is not None:
        weight = edge_weight[messages.edge]
    sent = x[messages.source] if weight is None else x[messages.source] * weight.unsqueeze(-1)
    out = sent.new_zeros(messages.ptr.numel() - 1, x.size(1)).index_add(0, messages.target, sent)
    return out if base is None else base + out


@torch.library.custom_op("idgnn::gather_sum", mutates_args=())
def _gather_sum(
    x: Tensor,
    weight: Tensor | None,
    place: Tensor | None,
    order: Tensor | None,
    base: Tensor | None,
    source: Tensor,
    ptr: Tensor,
    back_target: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
    hubs: bool,
) -> Tensor:
    """Message `i` has the weight `weight[place[order[i]]]`; an index that is `None` is left out."""
    if source.numel() == 0:
        if base is None:
            return x.new_zeros(ptr.numel() - 1, x.size(1))
        return base.clone(memory_format=torch.contiguous_format)
    if kernels := kernels_on(x.device):
        return kernels.weighted_sum(x, source, ptr, kernels.Weights(weight, place, order), base, hubs)
    # Detached: otherwise embedding_bag prepares its own backward, and ours is below.
    x, weight = x.detach(), None if weight is None else _in_order(weight, place, order).detach()
    out = embedding_bag(source, x, ptr, mode="sum", per_sample_weights=weight, include_last_offset=True)
    return out if base is None else out.add_(base)


def _in_order(weight: Tensor, place: Tensor | None, order: Tensor | None) -> Tensor:
    """The weight of each message."""
    # index_select: on a CPU it takes a fraction of the time of indexing with brackets.
    for index in (place, order):
        weight = weight if index is None else weight.index_select(0, index)
    return weight


@_gather_sum.register_fake
def _(x, weight, place, order, base, source, ptr, back_target, back_ptr, back_order, hubs):
    return x.new_empty(ptr.size(0) - 1, x.size(1))


def _save(ctx, inputs, output):
    x, weight, place, _, _, *ways, ctx.hubs = inputs
    ctx.save_for_backward(x, weight, place, *ways)


def _backward(ctx, grad):
    x, weight, place, source, ptr, back_target, back_ptr, back_order = ctx.saved_tensors
    grad = grad.contiguous()
    grad_x = grad_weight = None
    if ctx.needs_input_grad[0]:
        # The transpose: every source sums over its targets.
        weights, again = (weight, place, back_order), back_order
        if torch.is_grad_enabled():  # to differentiate twice, its own backward is needed
            weights = (None if weight is None else _in_order(*weights), None, None)
            again = torch.argsort(back_order)
        grad_x = _gather_sum(grad, *weights, None, back_target, back_ptr, source, ptr, again, ctx.hubs)
    if ctx.needs_input_grad[1]:
        if torch.is_grad_enabled():
            grad_weight = _products(x, grad, source, ptr)
        else:
            grad_weight = _products_once(x, grad, source, ptr, ctx.hubs)
        if place is not None and weight is not None:
            grad_weight = torch.zeros_like(weight).index_add(0, place, grad_weight)
    return grad_x, grad_weight, None, None, grad if ctx.needs_input_grad[4] else None, *(None,) * 6


_gather_sum.register_autograd(_backward, setup_context=_save)


def _products(x: Tensor, grad: Tensor, source: Tensor, ptr: Tensor) -> Tensor:
    """For each message the inner product of `x` at its source and `grad` at its target: `[messages]`."""
    target = groups(ptr, source.numel())
    return (x.index_select(0, source) * grad.index_select(0, target)).sum(-1)


@torch.library.custom_op("idgnn::products", mutates_args=())
def _products_once(x: Tensor, grad: Tensor, source: Tensor, ptr: Tensor, hubs: bool) -> Tensor:
    """:func:`_products`, without a gradient of its own."""
    if kernels := kernels_on(x.device):
        return kernels.products(x, grad, source, ptr, hubs)
    size, exact = (grad.size(0), x.size(0)), x.dtype in (torch.float32, torch.float64)
    if x.device.type == "cpu" and exact and x.size(1) and 0 < source.numel() <= size[0] * size[1]:
        # A product of two matrices at the given places alone: nothing is written out per message and channel.
        with warnings.catch_warnings(action="ignore"):  # PyTorch calls its sparse rows a beta feature, once a process
            places = torch.sparse_csr_tensor(ptr, source, x.new_zeros(source.numel()), size, check_invariants=False)
            return torch.sparse.sampled_addmm(places, grad, x.t(), beta=0, out=places).values()
    return _products(x, grad, source, ptr)


@_products_once.register_fake
def _(x, grad, source, ptr, hubs):
    return x.new_empty(source.size(0))
