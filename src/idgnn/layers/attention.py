r"""The weights of attention: a softmax over the messages of each target, whether plain or coloured."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from idgnn.identity.rounds import Messages, Round
from idgnn.layers.available import has_kernels


def attention(gives: list[Tensor], asks: Tensor, round_: Round, slope: float) -> list[Tensor]:
    r""":math:`\alpha_{st} = \textsc{Softmax}_{s \to t} \textsc{LeakyReLU}(g_s + a_t)`, for each head.

    Args:
        gives: What plain sources give to their scores `[sources, heads]`, and what coloured ones do if there are any.
        asks: What targets add to them `[targets, heads]`.
        round_: The messages.
        slope: Of the LeakyReLU.

    Returns:
        The weights of plain messages `[messages, heads]` and, if there are any, of coloured ones.
    """
    lists = [round_.plain, round_.coloured][: len(gives)]
    if asks.dtype in (torch.bfloat16, torch.float16):  # under autocast; a softmax wants more digits
        gives, asks = [each.float() for each in gives], asks.float()
    if not has_kernels(asks.device) or asks.numel() == 0:
        return attention_plain(gives, asks, [(each.source, each.target) for each in lists], slope)
    gives = [each.contiguous() for each in gives]
    first, second = lists[0], lists[-1]
    found = _attention(gives[0], gives[-1], asks.contiguous(), *_indices(first), *_indices(second), slope, len(gives))
    return list(found[: len(gives)])


def attention_plain(gives: list[Tensor], asks: Tensor, ends: list[tuple[Tensor, Tensor]], slope: float) -> list[Tensor]:
    """:func:`attention`, message by message; `ends` are the source and the target of each."""
    given = torch.cat([each.index_select(0, source) for each, (source, _) in zip(gives, ends, strict=True)])
    target = torch.cat([target for _, target in ends])
    score = leaky_relu(given + asks.index_select(0, target), slope)
    index = target.unsqueeze(-1).expand_as(score)
    highest = torch.full_like(asks, float("-inf")).scatter_reduce(0, index, score.detach(), "amax")
    weight = (score - highest.index_select(0, target)).exp()
    total = torch.zeros_like(asks).index_add(0, target, weight)
    return list((weight / total.index_select(0, target)).split([source.numel() for source, _ in ends]))


def _indices(messages: Messages) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return messages.source, messages.ptr, messages.back.ptr, messages.back.edge


@torch.library.custom_op("idgnn::attention", mutates_args=(), device_types="cuda")
def _attention(
    gives: Tensor,
    more_gives: Tensor,
    asks: Tensor,
    source: Tensor,
    ptr: Tensor,
    back_ptr: Tensor,
    back_order: Tensor,
    more_source: Tensor,
    more_ptr: Tensor,
    more_back_ptr: Tensor,
    more_back_order: Tensor,
    slope: float,
    number: int,
) -> tuple[Tensor, Tensor]:
    """Of one list of messages, or of two; of one, the second result is empty."""
    from idgnn.layers import kernels

    lists = [kernels.Given(gives, source, ptr), kernels.Given(more_gives, more_source, more_ptr)]
    found = kernels.attention(lists[:number], asks, slope)
    return found[0], found[1] if number == 2 else asks.new_empty(0, asks.size(1))


@_attention.register_fake
def _(gives, more_gives, asks, source, ptr, back_ptr, back_order, more_source, *rest):
    heads, number = asks.size(1), rest[-1]
    return asks.new_empty(source.size(0), heads), asks.new_empty(more_source.size(0) if number == 2 else 0, heads)


def _save(ctx, inputs, output):
    *tensors, ctx.slope, ctx.number = inputs
    ctx.save_for_backward(*tensors, *output)


def _backward(ctx, *grads):
    from idgnn.layers import kernels

    gives, more_gives, asks, source, ptr, back_ptr, back_order, *rest = ctx.saved_tensors
    more_source, more_ptr, more_back_ptr, more_back_order, *alphas = rest
    number, nothing = ctx.number, (None,) * 10
    if torch.is_grad_enabled():  # the kernels have no gradients of their own
        leaves = [gives, more_gives][:number]
        ends = [
            (each, torch.repeat_interleave(at.diff(), output_size=each.numel()))
            for each, at in ((source, ptr), (more_source, more_ptr))
        ][:number]
        again = attention_plain(leaves, asks, ends, ctx.slope)
        *found, grad_asks = torch.autograd.grad(again, [*leaves, asks], grads[:number], create_graph=True)
        return found[0], found[1] if number == 2 else None, grad_asks, *nothing
    found, grad_asks = kernels.attention_backward(
        [kernels.Given(gives, source, ptr), kernels.Given(more_gives, more_source, more_ptr)][:number],
        [(back_ptr, back_order), (more_back_ptr, more_back_order)][:number],
        asks,
        alphas[:number],
        [grad.contiguous() for grad in grads[:number]],
        ctx.slope,
    )
    return found[0], found[1] if number == 2 else None, grad_asks, *nothing


_attention.register_autograd(_backward, setup_context=_save)
