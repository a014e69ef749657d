r"""The two aggregations that carry almost all of the time: a weighted sum and a maximum over incoming messages.

Both read the messages where they stand instead of copying them to the edges first. On a CPU that is what
`embedding_bag` and PyTorch's reduction by sparse rows do: many times faster than gathering and scattering. On a GPU it
is what the kernels of :mod:`idgnn.layers.kernels` do. The `*_plain` twins say what is computed, for the tests. They are
custom operators so that `torch.compile` takes them as they are.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from idgnn.identity.rounds import Messages
from idgnn.layers.available import kernels_on


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
        edge_weight: In place of `weight`: of each edge of the original graph, and behind them of each self-loop.
        base: What is added to `[targets, channels]`; `None` for zeros.
    """
    place = None
    if edge_weight is not None:
        weight, place = edge_weight, messages.edge
    if weight is not None:
        dtype = torch.promote_types(x.dtype, weight.dtype)  # bf16 messages under autocast are summed in float32
        x, weight = x.to(dtype), weight.to(dtype)
    if base is not None:
        x, base = x.to(dtype := torch.promote_types(x.dtype, base.dtype)), base.to(dtype)
    back = messages.back
    return _gather_sum(x, weight, place, None, base, messages.source, messages.ptr, back.neighbour, back.ptr, back.edge)


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


def gather_max(x: Tensor, messages: Messages, *, base: Tensor | None = None) -> Tensor:
    r""":math:`\mathbf{y}_t = \max(\mathbf{b}_t, \max_{s \to t} \mathbf{x}_s)`, where `x` and `base` are not negative.

    Without a base, a target that hears nothing gets zero; of equal values the base wins.
    """
    back = messages.back
    return _gather_max(x, base, messages.source, messages.ptr, back.neighbour, back.ptr, back.edge)[0]


def gather_max_plain(x: Tensor, messages: Messages, *, base: Tensor | None = None) -> Tensor:
    """:func:`gather_max`, message by message."""
    sent = x[messages.source]
    index = messages.target.unsqueeze(-1).expand_as(sent)
    out = sent.new_zeros(messages.ptr.numel() - 1, x.size(1)).scatter_reduce(0, index, sent, "amax")
    return out if base is None else torch.maximum(base, out)


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
) -> Tensor:
    """Message `i` has the weight that stands at `place[order[i]]`; without one of them, where the other says."""
    if source.numel() == 0:
        return x.new_zeros(ptr.numel() - 1, x.size(1)) if base is None else base.clone()
    if kernels := kernels_on(x.device):
        return kernels.weighted_sum(x, source, ptr, kernels.Weights(weight, place, order), base)
    # Detached, or it would work out what only its own backward needs; ours is below.
    x, weight = x.detach(), None if weight is None else _in_order(weight, place, order).detach()
    out = embedding_bag(source, x, ptr, mode="sum", per_sample_weights=weight, include_last_offset=True)
    return out if base is None else out.add_(base)


def _in_order(weight: Tensor, place: Tensor | None, order: Tensor | None) -> Tensor:
    """The weight of each message."""
    if place is not None:
        weight = weight[place]
    return weight if order is None else weight[order]


@_gather_sum.register_fake
def _(x, weight, place, order, base, source, ptr, back_target, back_ptr, back_order):
    return x.new_empty(ptr.size(0) - 1, x.size(1))


def _save_sum(ctx, inputs, output):
    x, weight, place, _, _, *ways = inputs
    ctx.save_for_backward(x, weight, place, *ways)


def _backward_sum(ctx, grad):
    x, weight, place, source, ptr, back_target, back_ptr, back_order = ctx.saved_tensors
    grad = grad.contiguous()
    grad_x = grad_weight = None
    if ctx.needs_input_grad[0]:
        # The transpose: every source collects from its targets.
        order, again = back_order, back_order
        if torch.is_grad_enabled():  # its own way back is needed to differentiate twice
            weight_back = None if weight is None else _in_order(weight, place, order)
            place_back, order, again = None, None, torch.argsort(back_order)
        else:
            weight_back, place_back = weight, place
        grad_x = _gather_sum(grad, weight_back, place_back, order, None, back_target, back_ptr, source, ptr, again)
    if ctx.needs_input_grad[1]:
        grad_weight = _products(x, grad, source, ptr)
        if place is not None and weight is not None:
            grad_weight = torch.zeros_like(weight).index_add(0, place, grad_weight)
    return grad_x, grad_weight, None, None, grad if ctx.needs_input_grad[4] else None, *(None,) * 5


def _products(x: Tensor, grad: Tensor, source: Tensor, ptr: Tensor) -> Tensor:
    """For each message the inner product of `x` at its source and `grad` at its target: `[messages]`."""
    kernels = kernels_on(x.device)
    if kernels is not None and not torch.is_grad_enabled():  # the kernel has no gradient of its own
        return kernels.products(x, grad, source, ptr)
    target = torch.repeat_interleave(ptr.diff(), output_size=source.numel())
    return (x[source] * grad[target]).sum(-1)


_gather_sum.register_autograd(_backward_sum, setup_context=_save_sum)


@torch.library.custom_op("idgnn::gather_max", mutates_args=())
def _gather_max(
    x: Tensor,
    base: Tensor | None,
    source: Tensor,
    ptr: Tensor,
    back_target: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
) -> tuple[Tensor, Tensor]:
    """The maximum, and the message that it came in: -1 for the base; where there is nothing, no message's number."""
    if source.numel() == 0:
        value = x.new_zeros(ptr.numel() - 1, x.size(1)) if base is None else base.clone()
        return value, torch.full_like(value, -1, dtype=torch.int32)
    if kernels := kernels_on(x.device):
        return kernels.maximum(x, source, ptr, base)
    value, winner = (_max_on_cpu if x.device.type == "cpu" else _max_and_winner)(x, source, ptr)
    if base is None:
        return value, winner
    better = (value > base) | value.isnan()
    return torch.where(better, value, base), torch.where(better, winner, -1)


def _max_on_cpu(x: Tensor, source: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    ones, size = x.new_ones(source.numel()), (ptr.numel() - 1, x.size(0))
    with warnings.catch_warnings(action="ignore"):  # PyTorch calls its sparse rows a beta feature, once a process
        matrix = torch.sparse_csr_tensor(ptr, source, ones, size, check_invariants=False)
    with torch.enable_grad():  # only then does it say where a maximum came from
        value, winner = torch.ops.aten._sparse_mm_reduce_impl(matrix, x.detach().requires_grad_(), "amax")
    return value.detach(), winner.int()


def _max_and_winner(x: Tensor, source: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """Where there is neither a kernel nor what PyTorch has for the CPU alone: of equal messages the first wins."""
    sent = x[source]
    target = torch.repeat_interleave(ptr.diff(), output_size=source.numel()).unsqueeze(-1).expand_as(sent)
    value = sent.new_zeros(ptr.numel() - 1, x.size(1)).scatter_reduce(0, target, sent, "amax")
    number = torch.arange(source.numel(), device=x.device).unsqueeze(-1).expand_as(sent)
    best = torch.where(sent == value.gather(0, target), number, source.numel())
    winner = torch.full_like(value, source.numel(), dtype=torch.long).scatter_reduce(0, target, best, "amin")
    return value, winner.int()


@_gather_max.register_fake
def _(x, base, source, ptr, back_target, back_ptr, back_order):
    shape = (ptr.size(0) - 1, x.size(1))
    return x.new_empty(shape), source.new_empty(shape, dtype=torch.int32)


def _save_max(ctx, inputs, output):
    ctx.save_for_backward(output[1], *inputs[2:])


def _backward_max(ctx, grad, _):
    winner, source, ptr, back_target, back_ptr, back_order = ctx.saved_tensors
    grad_x = grad_base = None
    if ctx.needs_input_grad[0]:
        grad_x = _to_winners(grad, winner, source, ptr, back_target, back_ptr, back_order)
    if ctx.needs_input_grad[1]:
        grad_base = grad * (winner < 0)
    return grad_x, grad_base, *(None,) * 5


def _to_winners(
    grad: Tensor,
    winner: Tensor,
    source: Tensor,
    ptr: Tensor,
    back_target: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
) -> Tensor:
    """For each source the sum of the gradients of the maxima that it won."""
    if source.numel() == 0:
        return grad.new_zeros(back_ptr.numel() - 1, grad.size(1))
    kernels = kernels_on(grad.device)
    if kernels is not None and not torch.is_grad_enabled():  # the kernel has no gradient of its own
        return kernels.from_winners(grad, winner, back_target, back_ptr, back_order)
    # Where no message won, any row will do: its gradient is zeroed.
    grad = grad * ((winner >= 0) & (ptr.diff() > 0).unsqueeze(-1))
    row = source[winner.clamp(0, source.numel() - 1)]
    return grad.new_zeros(back_ptr.numel() - 1, grad.size(1)).scatter_add(0, row, grad)


_gather_max.register_autograd(_backward_max, setup_context=_save_max)
