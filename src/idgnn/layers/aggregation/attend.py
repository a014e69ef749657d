r"""Attention over incoming messages, and the sum that it weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from idgnn.identity.adjacency import groups
from idgnn.identity.schedule import Messages
from idgnn.layers.aggregation.dispatch import has_kernels, kernels_on
from idgnn.layers.aggregation.lists import TwoLists
from idgnn.layers.aggregation.operators import differentiable, operator
from idgnn.layers.aggregation.softmax import attention, ends
from idgnn.layers.aggregation.sums import gather_sum


def attend(sent: Tensor, scores: Tensor, messages: Messages | TwoLists, own: Tensor, slope: float) -> Tensor:
    r"""Attention over the messages of each target, for each head:

    .. math:: \mathbf{y}_t = \sum_{s \to t} \alpha_{st} \mathbf{x}_s, \qquad
        \alpha_{st} = \textsc{Softmax}_{s \to t} \textsc{LeakyReLU}(g_s + a_{o(t)})

    Args:
        sent: :math:`\mathbf{x}` `[sources, channels]`, which the heads share.
        scores: For each head :math:`g` and :math:`a` side by side `[sources, 2 * heads]`.
        messages: Which source sends to which target.
        own: The source row that is each target's own state, :math:`o(t)` `[targets]`.
        slope: Of the LeakyReLU.
    """
    if sent.dtype in (torch.bfloat16, torch.float16):  # a softmax needs more digits
        out = attend(sent.float(), scores.float(), messages, own, slope)
        # Under autocast sums are in float32 as well; in a network of half precision what follows is not.
        return out if torch.is_autocast_enabled(sent.device.type) else out.to(sent.dtype)
    return _attend(sent, scores, messages, own, slope)


def _attend(sent: Tensor, scores: Tensor, messages: Messages | TwoLists, own: Tensor, slope: float) -> Tensor:
    first, more = (messages.plain, messages.colored) if isinstance(messages, TwoLists) else (messages, None)
    split = messages.split if isinstance(messages, TwoLists) else sent.size(0)
    if more is not None and not more.source.numel():
        more = None
    hubs = first.hubs or (more is not None and more.hubs)
    if hubs or not has_kernels(sent.device) or not sent.size(1):  # a program that computes a hub would take too long
        give, ask = scores.view(scores.size(0), scores.size(1) // 2, 2).unbind(-1)
        return gather_sum(sent, messages, attention(give, ask.index_select(0, own), messages, slope))
    lists = *_tensors(first), *((None,) * 5 if more is None else _tensors(more))
    return _attend_by_kernels(sent.contiguous(), scores.contiguous(), own, slope, split, *lists)[0]


def attend_plain(sent: Tensor, scores: Tensor, messages: Messages | TwoLists, own: Tensor, slope: float) -> Tensor:
    """:func:`attend`, message by message."""
    return _plain(sent, scores, *ends(messages), own, slope)


def _plain(sent: Tensor, scores: Tensor, source: Tensor, target: Tensor, own: Tensor, slope: float) -> Tensor:
    give, ask = scores.view(scores.size(0), scores.size(1) // 2, 2).unbind(-1)  # [sources, heads]
    score = torch.nn.functional.leaky_relu(give[source] + ask[own][target], slope)
    index, shape = target.unsqueeze(-1).expand_as(score), (own.numel(), score.size(1))
    highest = score.new_full(shape, float("-inf")).scatter_reduce(0, index, score.detach(), "amax")
    weight = (score - highest[target]).exp()
    alpha = weight / score.new_zeros(shape).index_add(0, target, weight)[target]
    value = sent[source].view(source.numel(), alpha.size(1), sent.size(1) // alpha.size(1)) * alpha.unsqueeze(-1)
    return sent.new_zeros(own.numel(), sent.size(1)).index_add(0, target, value.flatten(1))


def _tensors(messages: Messages) -> tuple[Tensor, ...]:
    back = messages.back
    return messages.source, messages.ptr, back.neighbor, back.ptr, back.edge


def _save(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.slope, ctx.split, first, more = *inputs[:5], inputs[5:10], inputs[10:]
    ctx.set_materialize_grads(False)  # the weights have none
    ctx.save_for_backward(*tensors, *output, *first, *more)


def _backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 15
    sent, scores, own, out, alpha, *lists = ctx.saved_tensors
    if torch.is_grad_enabled():  # the kernels have no gradients of their own
        found = _again(ctx, sent, scores, own, lists, grad)
    else:
        given = (sent, scores, own, out, alpha, grad.contiguous())
        found = _attend_backward(*given, *lists, ctx.split, ctx.slope, eager=ctx.eager)
    return *found, *(None,) * 13


def _again(
    ctx: Any, sent: Tensor, scores: Tensor, own: Tensor, lists: list[Tensor], grad: Tensor
) -> list[Tensor | None]:
    """The gradients in a form that can be differentiated again."""
    source, ptr, more_source, more_ptr = lists[0], lists[1], lists[5], lists[6]
    target = groups(ptr, source.numel())
    if more_source is not None:
        source = torch.cat([source, more_source + ctx.split])
        target = torch.cat([target, groups(more_ptr, more_source.numel())])
    out = _plain(sent, scores, source, target, own, ctx.slope)
    wanted = [leaf for leaf in (sent, scores) if leaf.requires_grad]
    found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
    return [next(found) if leaf.requires_grad else None for leaf in (sent, scores)]


def _fake(sent, scores, own, slope, split, source, ptr, back_target, back_ptr, back_order, more_source, *rest):
    number = source.size(0) + (0 if more_source is None else more_source.size(0))
    return sent.new_empty(ptr.size(0) - 1, sent.size(1)), sent.new_empty(number, scores.size(1) // 2)


@differentiable("attend", _fake, _save, _backward, wanted=2)
def _attend_by_kernels(
    sent: Tensor,
    scores: Tensor,
    own: Tensor,
    slope: float,
    split: int,
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
    """The sums, and the weights of the messages."""
    kernels = kernels_on(sent.device)
    assert kernels is not None
    return kernels.attend(sent, scores, own, kernels.Lists(source, ptr, more_source, more_ptr, split), slope)


def _fake_backward(sent, scores, *rest):
    return torch.empty_like(sent), torch.empty_like(scores)


@operator("attend_backward", _fake_backward)
def _attend_backward(
    sent: Tensor,
    scores: Tensor,
    own: Tensor,
    out: Tensor,
    alpha: Tensor,
    grad: Tensor,
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
    split: int,
    slope: float,
) -> tuple[Tensor, Tensor]:
    kernels = kernels_on(sent.device)
    assert kernels is not None
    more = None
    if more_back_target is not None and more_back_ptr is not None and more_back_order is not None:
        more = (more_back_target, more_back_ptr, more_back_order)
    lists, back = kernels.Lists(source, ptr, more_source, more_ptr, split), (back_target, back_ptr, back_order)
    return kernels.attend_backward(sent, scores, own, lists, back, more, out, alpha, grad, slope)
