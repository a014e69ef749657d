"""What colored rows add to their own states."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from idgnn.identity.schedule import Round
from idgnn.layers.aggregation.dispatch import has_kernels, kernels_on


def add_update(total: Tensor, update: Tensor, round_: Round, in_place: bool = True) -> Tensor:
    r""":math:`\mathbf{y}_t = \mathbf{x}_t + \mathbf{u}_{o(t)}` for targets that are colored, all others as they are.

    Args:
        total: What the targets have so far `[targets, channels]`.
        update: Of each colored source `[colored sources, channels]`.
        round_: Says which source row is a target's own state, and which of these are colored.
        in_place: Whether `total` itself is changed.
    """
    update = update.to(total.dtype)
    if not torch.compiler.is_compiling() and has_kernels(total.device):
        return _AddUpdate.apply(total.contiguous(), update.contiguous(), round_.previous, round_.split, in_place)
    if round_.second is not None:
        return add_update_plain(total, update, round_)
    # The state of a colored source is that of at most one target before the round: this finds it without a look at
    # values, and passes over the colored targets alone. Sources without a target add zero to the first one.
    none = round_.num_targets
    every = torch.arange(none, device=total.device)
    target = every.new_full((round_.num_sources,), none).scatter_(0, round_.previous, every)[round_.split :]
    there = target < none
    added = update * there.unsqueeze(-1)
    return (total if in_place else total.clone()).index_add_(0, target.where(there, 0), added)


def add_update_plain(total: Tensor, update: Tensor, round_: Round) -> Tensor:
    """:func:`add_update`, target by target: with two colors a source is the own state of many of them."""
    none = update.new_zeros(1, update.size(1))
    place = (round_.previous - (round_.split - 1)).clamp(min=0)  # the first row for targets that are not colored
    return total + torch.cat([none, update]).index_select(0, place)


class _AddUpdate(torch.autograd.Function):
    """:func:`add_update` by kernels."""

    @staticmethod
    def forward(ctx: Any, total: Tensor, update: Tensor, previous: Tensor, split: int, in_place: bool) -> Tensor:  # type: ignore[override]
        kernels = kernels_on(total.device)
        assert kernels is not None
        ctx.split, ctx.size = split, update.size(0)
        ctx.save_for_backward(previous)
        out = total if in_place else torch.empty_like(total)
        if in_place:
            ctx.mark_dirty(total)
        kernels.add_rows(total, update, previous, split, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (previous,) = ctx.saved_tensors
        found = None
        if ctx.needs_input_grad[1] and torch.is_grad_enabled():  # the kernel has no gradient of its own
            place = (previous - (ctx.split - 1)).clamp(min=0)
            found = grad.new_zeros(ctx.size + 1, grad.size(1)).index_add(0, place, grad)[1:]
        elif ctx.needs_input_grad[1]:
            kernels = kernels_on(grad.device)
            assert kernels is not None
            found = kernels.collect_rows(grad.contiguous(), previous, ctx.split, ctx.size)
        return grad, found, None, None, None
