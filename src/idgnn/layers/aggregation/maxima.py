"""Maxima over incoming messages."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from idgnn.identity.adjacency import groups
from idgnn.identity.schedule import Messages
from idgnn.layers.aggregation.dispatch import has_kernels, kernels_on, promote_dtypes


def gather_max(x: Tensor, messages: Messages, *, base: Tensor | None = None) -> Tensor:
    r""":math:`\mathbf{y}_t = \max(\mathbf{b}_t, \max_{s \to t} \mathbf{x}_s)`, where `x` and `base` are not negative.

    Without a base, a target that receives no message gets zero. Among equal values the gradient goes to the base.
    """
    x, base = promote_dtypes(x, base)
    back = messages.back
    ways = (messages.source, messages.ptr, back.neighbor, back.ptr, back.edge)
    return _gather_max(x, base, *ways, messages.hubs)[0]


def gather_max_plain(x: Tensor, messages: Messages, *, base: Tensor | None = None) -> Tensor:
    """:func:`gather_max`, message by message."""
    out = _highest(x[messages.source], messages.target, messages.ptr.numel() - 1)
    return out if base is None else torch.maximum(base, out)


def _highest(sent: Tensor, target: Tensor, num_targets: int) -> Tensor:
    index = target.unsqueeze(-1).expand_as(sent)
    return sent.new_zeros(num_targets, sent.size(1)).scatter_reduce(0, index, sent, "amax")


@torch.library.custom_op("idgnn::gather_max", mutates_args=())
def _gather_max(
    x: Tensor,
    base: Tensor | None,
    source: Tensor,
    ptr: Tensor,
    back_target: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
    hubs: bool,
) -> tuple[Tensor, Tensor]:
    """The maximum, and the number of the message with it: -1 for the base; unspecified where there is no message."""
    if source.numel() == 0:
        value = x.new_zeros(ptr.numel() - 1, x.size(1))
        if base is not None:
            value = base.clone(memory_format=torch.contiguous_format)
        return value, torch.full_like(value, -1, dtype=torch.int32)
    if kernels := kernels_on(x.device):
        return kernels.maximum(x, source, ptr, base, hubs)
    value, winner = (_max_on_cpu if x.device.type == "cpu" else _max_and_winner)(x, source, ptr)
    if base is None:
        return value, winner
    better = (value > base) | value.isnan()
    return torch.where(better, value, base), torch.where(better, winner, -1)


def _max_on_cpu(x: Tensor, source: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    ones, size = x.new_ones(source.numel()), (ptr.numel() - 1, x.size(0))
    with warnings.catch_warnings(action="ignore"):  # PyTorch calls its sparse rows a beta feature, once a process
        matrix = torch.sparse_csr_tensor(ptr, source, ones, size, check_invariants=False)
    with torch.enable_grad():  # only then are the positions of the maxima returned
        value, winner = torch.ops.aten._sparse_mm_reduce_impl(matrix, x.detach().requires_grad_(), "amax")
    return value.detach(), winner.int()


def _max_and_winner(x: Tensor, source: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """Without a kernel and not on a CPU: among equal messages the first is taken."""
    sent, target = x.index_select(0, source), groups(ptr, source.numel())
    value = _highest(sent, target, ptr.numel() - 1)
    number = torch.arange(source.numel(), device=x.device).unsqueeze(-1).expand_as(sent)
    best = torch.where(sent == value.index_select(0, target), number, source.numel())
    winner = torch.full_like(value, source.numel(), dtype=torch.long)
    return value, winner.scatter_reduce(0, target.unsqueeze(-1).expand_as(sent), best, "amin").int()


@_gather_max.register_fake
def _(x, base, source, ptr, back_target, back_ptr, back_order, hubs):
    shape = (ptr.size(0) - 1, x.size(1))
    return x.new_empty(shape), source.new_empty(shape, dtype=torch.int32)


def _save(ctx, inputs, output):
    *ways, ctx.hubs = inputs[2:]
    ctx.num_sources = inputs[0].size(0)
    ctx.save_for_backward(output[1], *ways)


def _backward(ctx, grad, _):
    winner, *ways = ctx.saved_tensors
    grad_x = None
    if ctx.needs_input_grad[0]:
        grad_x = _to_winners(grad, winner, *ways, hubs=ctx.hubs, num_sources=ctx.num_sources)
    grad_base = grad * (winner < 0) if ctx.needs_input_grad[1] else None
    return grad_x, grad_base, *(None,) * 6


_gather_max.register_autograd(_backward, setup_context=_save)


def _to_winners(
    grad: Tensor,
    winner: Tensor,
    source: Tensor,
    ptr: Tensor,
    back_target: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
    hubs: bool,
    num_sources: int,
) -> Tensor:
    """For each source the sum of the gradients of the maxima that its messages are."""
    by_source = back_ptr.size(0) == num_sources + 1  # batches that were prepared for a CPU are not
    if by_source and has_kernels(grad.device) and not torch.is_grad_enabled():  # the kernel has no gradient of its own
        return _to_winners_once(grad, winner, back_target, back_ptr, back_order, hubs)
    none = grad.new_zeros(num_sources, grad.size(1))
    if source.numel() == 0:
        return none
    # Where no message is the maximum the gradient is zero, so any row is right.
    grad = grad * ((winner >= 0) & (ptr.diff() > 0).unsqueeze(-1))
    return none.scatter_add(0, source[winner.clamp(0, source.numel() - 1)], grad)


@torch.library.custom_op("idgnn::to_winners", mutates_args=())
def _to_winners_once(grad: Tensor, winner: Tensor, target: Tensor, ptr: Tensor, order: Tensor, hubs: bool) -> Tensor:
    kernels = kernels_on(grad.device)
    assert kernels is not None
    return kernels.from_winners(grad, winner, target, ptr, order, hubs)


@_to_winners_once.register_fake
def _(grad, winner, target, ptr, order, hubs):
    return grad.new_empty(ptr.size(0) - 1, grad.size(1))
