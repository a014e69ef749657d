"""Maxima over incoming messages."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from idgnn.identity.adjacency import groups
from idgnn.identity.schedule import Messages, no_messages
from idgnn.layers.aggregation.dispatch import has_kernels, kernels_on
from idgnn.layers.aggregation.lists import TwoLists
from idgnn.layers.aggregation.operators import differentiable, operator


def gather_max(x: Tensor, messages: Messages | TwoLists) -> Tensor:
    r""":math:`\mathbf{y}_t = \max_{s \to t} \mathbf{x}_s`, where `x` is not negative; zero over no messages.

    Among equal values the gradient goes to one of them.
    """
    if not isinstance(messages, TwoLists):
        messages = TwoLists(messages, no_messages(messages.ptr, 0, 0), x.size(0))
    plain, colored, split = messages
    more = _tensors(colored) if colored.source.numel() else (None,) * 5
    return _gather_max(x, split, plain.hubs or colored.hubs, *_tensors(plain), *more)[0]


def gather_max_plain(x: Tensor, messages: Messages | TwoLists) -> Tensor:
    """:func:`gather_max`, message by message."""
    if isinstance(messages, TwoLists):
        plain, colored, split = messages
        return torch.maximum(gather_max_plain(x[:split], plain), gather_max_plain(x[split:], colored))
    return _highest(x[messages.source], messages.target, messages.ptr.numel() - 1)


def _highest(sent: Tensor, target: Tensor, num_targets: int) -> Tensor:
    index = target.unsqueeze(-1).expand_as(sent)
    return sent.new_zeros(num_targets, sent.size(1)).scatter_reduce(0, index, sent, "amax")


def _tensors(messages: Messages) -> tuple[Tensor, ...]:
    back = messages.back
    return messages.source, messages.ptr, back.neighbor, back.ptr, back.edge


def _save(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
    x, ctx.split, ctx.hubs, source, _, *back = inputs
    ctx.num_sources, more_source = x.size(0), back[3]
    ctx.save_for_backward(output[1], source, more_source, *back[:3], *back[5:])


def _backward(ctx: Any, grad: Tensor, _: None) -> tuple[Tensor | None, ...]:
    winner, source, more_source, *back = ctx.saved_tensors
    # Batches that were prepared for a CPU have no lists by source, and the kernel has no gradient of its own.
    if back[1].size(0) and has_kernels(grad.device) and not torch.is_grad_enabled():
        found = _to_winners(grad.contiguous(), winner, *back, ctx.num_sources, ctx.hubs, eager=ctx.eager)
    else:
        found = _to_winners_plain(grad, winner, source, more_source, ctx.split, ctx.num_sources)
    return found, *(None,) * 12


def _to_winners_plain(
    grad: Tensor, winner: Tensor, source: Tensor, more_source: Tensor | None, split: int, num_sources: int
) -> Tensor:
    """For each source the sum of the gradients of the maxima that its messages are."""
    # What no message won goes to an extra row.
    rows = [source, source.new_full((1,), num_sources)]
    if more_source is not None:
        rows.insert(1, more_source + split)
    # index_select: on a CPU it takes a fraction of the time of indexing with brackets.
    row = torch.cat(rows).index_select(0, winner.flatten()).view_as(winner)
    return grad.new_zeros(num_sources + 1, grad.size(1)).scatter_add(0, row, grad)[:num_sources]


def _fake_gather_max(x, split, hubs, source, ptr, *rest):
    shape = (ptr.size(0) - 1, x.size(1))
    return x.new_empty(shape), source.new_empty(shape, dtype=torch.int32)


@differentiable("gather_max", _fake_gather_max, _save, _backward, wanted=1)
def _gather_max(
    x: Tensor,
    split: int,
    hubs: bool,
    source: Tensor,
    ptr: Tensor,
    back_target: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
    more_source: Tensor | None,
    more_ptr: Tensor | None,
    more_back_target: Tensor | None,
    more_back_ptr: Tensor | None,
    more_back_order: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The maximum, and the number of the message with it, counted over both lists: that of all of them for none."""
    if kernels := kernels_on(x.device):
        return kernels.maximum(x, source, ptr, more_source, more_ptr, split, hubs)
    assert more_source is None, "two lists are for kernels: elsewhere they are merged"
    if source.numel() == 0:
        value = x.new_zeros(ptr.numel() - 1, x.size(1))
        return value, torch.zeros_like(value, dtype=torch.int32)
    return (_max_on_cpu if x.device.type == "cpu" else _max_and_winner)(x, source, ptr)


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


def _fake_to_winners(grad, winner, target, ptr, order, more_target, more_ptr, more_order, rows, hubs):
    return grad.new_empty(rows, grad.size(1))


@operator("to_winners", _fake_to_winners)
def _to_winners(
    grad: Tensor,
    winner: Tensor,
    target: Tensor,
    ptr: Tensor,
    order: Tensor,
    more_target: Tensor | None,
    more_ptr: Tensor | None,
    more_order: Tensor | None,
    rows: int,
    hubs: bool,
) -> Tensor:
    """:func:`_to_winners_plain` by kernels."""
    kernels = kernels_on(grad.device)
    assert kernels is not None
    more = None
    if more_target is not None and more_ptr is not None and more_order is not None:
        more = (more_target, more_ptr, more_order)
    return kernels.from_winners(grad, winner, (target, ptr, order), more, rows, hubs)
