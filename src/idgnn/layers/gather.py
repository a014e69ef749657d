r"""The two aggregations that carry almost all of the time: a weighted sum and a maximum over incoming messages.

Both read the messages where they stand instead of copying them to the edges first. On a CPU that is what
`embedding_bag` does: many times faster than gathering and scattering. The `*_plain` twins say what is computed.
They are custom operators so that `torch.compile` takes them as they are.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from idgnn.identity.rounds import Messages


def gather_sum(x: Tensor, messages: Messages, weight: Tensor | None = None) -> Tensor:
    r""":math:`\mathbf{y}_t = \sum_{s \to t} w_{st}\, \mathbf{x}_s`, zero where no message arrives.

    Args:
        x: `[sources, channels]`.
        messages: Which source sends to which target.
        weight: `[messages]`, or `None` for ones.
    """
    if weight is None:
        weight = x.new_ones(messages.source.numel())
    back = messages.back
    dtype = torch.promote_types(x.dtype, weight.dtype)  # bf16 messages under autocast are summed in float32
    return _gather_sum(
        x.to(dtype), weight.to(dtype), messages.source, messages.ptr, back.neighbour, back.ptr, back.edge
    )


def gather_sum_plain(x: Tensor, messages: Messages, weight: Tensor | None = None) -> Tensor:
    """:func:`gather_sum`, message by message."""
    sent = x[messages.source] if weight is None else x[messages.source] * weight.unsqueeze(-1)
    return sent.new_zeros(messages.ptr.numel() - 1, x.size(1)).index_add(0, messages.target, sent)


def gather_max(x: Tensor, messages: Messages) -> Tensor:
    r""":math:`\mathbf{y}_t = \max_{s \to t} \mathbf{x}_s` for `x >= 0`, zero where no message arrives."""
    if x.device.type != "cpu" or messages.source.numel() == 0:
        return gather_max_plain(x, messages)
    return _gather_max(x, messages.source, messages.ptr)[0]


def gather_max_plain(x: Tensor, messages: Messages) -> Tensor:
    """:func:`gather_max`, message by message."""
    sent = x[messages.source]
    index = messages.target.unsqueeze(-1).expand_as(sent)
    return sent.new_zeros(messages.ptr.numel() - 1, x.size(1)).scatter_reduce(0, index, sent, "amax")


@torch.library.custom_op("idgnn::gather_sum", mutates_args=())
def _gather_sum(
    x: Tensor,
    weight: Tensor,
    source: Tensor,
    ptr: Tensor,
    back_target: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
) -> Tensor:
    if source.numel() == 0:
        return x.new_zeros(ptr.numel() - 1, x.size(1))
    # Detached, or it would work out what only its own backward needs; ours is below.
    x, weight = x.detach(), weight.detach()
    return embedding_bag(source, x, ptr, mode="sum", per_sample_weights=weight, include_last_offset=True)


@_gather_sum.register_fake
def _(x, weight, source, ptr, back_target, back_ptr, back_order):
    return x.new_empty(ptr.size(0) - 1, x.size(1))


def _save_sum(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward_sum(ctx, grad):
    x, weight, source, ptr, back_target, back_ptr, back_order = ctx.saved_tensors
    grad = grad.contiguous()
    grad_x = grad_weight = None
    if ctx.needs_input_grad[0]:
        # The transpose: every source collects from its targets. Its own way back is needed to differentiate twice.
        again = torch.argsort(back_order) if torch.is_grad_enabled() else back_order
        grad_x = _gather_sum(grad, weight[back_order], back_target, back_ptr, source, ptr, again)
    if ctx.needs_input_grad[1]:
        target = torch.repeat_interleave(ptr.diff(), output_size=source.numel())
        grad_weight = (x[source] * grad[target]).sum(-1)
    return grad_x, grad_weight, None, None, None, None, None


_gather_sum.register_autograd(_backward_sum, setup_context=_save_sum)


@torch.library.custom_op("idgnn::gather_max", mutates_args=())
def _gather_max(x: Tensor, source: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum, and the source row that it came from; PyTorch has it for the CPU alone."""
    ones, size = x.new_ones(source.numel()), (ptr.numel() - 1, x.size(0))
    with warnings.catch_warnings(action="ignore"):  # PyTorch calls its sparse rows a beta feature, once a process
        matrix = torch.sparse_csr_tensor(ptr, source, ones, size, check_invariants=False)
    with torch.enable_grad():  # only then does it say where a maximum came from
        value, position = torch.ops.aten._sparse_mm_reduce_impl(matrix, x.detach().requires_grad_(), "amax")
    # A target without messages has no winner; any row will do, its gradient is zeroed on the way back.
    return value.detach(), source[position.clamp(max=source.numel() - 1)]


@_gather_max.register_fake
def _(x, source, ptr):
    shape = (ptr.size(0) - 1, x.size(1))
    return x.new_empty(shape), source.new_empty(shape)


def _save_max(ctx, inputs, output):
    x, _, ptr = inputs
    ctx.save_for_backward(output[1], ptr)
    ctx.num_sources = x.size(0)


def _backward_max(ctx, grad, _):
    winner, ptr = ctx.saved_tensors
    grad = grad * (ptr.diff() > 0).unsqueeze(-1)
    return grad.new_zeros(ctx.num_sources, grad.size(1)).scatter_add(0, winner, grad), None, None


_gather_max.register_autograd(_backward_max, setup_context=_save_max)
