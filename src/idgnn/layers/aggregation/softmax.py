r"""The weights of attention: a softmax over the plain and colored messages of each target."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from idgnn.identity.adjacency import groups
from idgnn.identity.schedule import Messages, Round
from idgnn.layers.aggregation.dispatch import has_kernels


def attention(gives: list[Tensor], asks: Tensor, round_: Round, slope: float) -> list[Tensor]:
    r""":math:`\alpha_{st} = \textsc{Softmax}_{s \to t} \textsc{LeakyReLU}(g_s + a_t)`, for each head.

    Args:
        gives: What plain sources give to their scores `[sources, heads]`, and what colored ones do if there are any.
        asks: What targets add to them `[targets, heads]`.
        round_: The messages.
        slope: Of the LeakyReLU.

    Returns:
        The weights of plain messages `[messages, heads]` and, if there are any, of colored ones.
    """
    if asks.dtype in (torch.bfloat16, torch.float16):  # a softmax needs more digits
        found = attention([each.float() for each in gives], asks.float(), round_, slope)
        # Under autocast sums are in float32 as well; in a network of half precision what follows is not.
        return found if torch.is_autocast_enabled(asks.device.type) else [each.to(asks.dtype) for each in found]
    lists = [round_.plain, round_.colored][: len(gives)]
    if not has_kernels(asks.device) or asks.numel() == 0:
        return attention_plain(gives, asks, [(each.source, each.target) for each in lists], slope)
    gives = [each.contiguous() for each in gives]
    first, second = lists[0], lists[-1]
    hubs = first.hubs or second.hubs
    given = (gives[0], gives[-1], asks.contiguous(), *_indices(first), *_indices(second))
    found = _attention(*given, slope, len(gives), hubs)
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


@torch.library.custom_op("idgnn::attention", mutates_args=())
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
    hubs: bool,
) -> tuple[Tensor, Tensor]:
    """The weights of one list of messages, or of two; for one list the second result is empty."""
    from idgnn.layers.aggregation import kernels

    lists = [kernels.Given(gives, source, ptr), kernels.Given(more_gives, more_source, more_ptr)]
    found = kernels.attention(lists[:number], asks, slope, hubs)
    return found[0], found[1] if number == 2 else asks.new_empty(0, asks.size(1))


@_attention.register_fake
def _(gives, more_gives, asks, source, ptr, back_ptr, back_order, more_source, *rest):
    heads, number = asks.size(1), rest[-2]
    return asks.new_empty(source.size(0), heads), asks.new_empty(more_source.size(0) if number == 2 else 0, heads)


def _save(ctx, inputs, output):
    *tensors, ctx.slope, ctx.number, ctx.hubs = inputs
    ctx.save_for_backward(*tensors, *output)


def _backward(ctx, *grads):
    gives, more_gives, asks, *ways, alpha, more_alpha = ctx.saved_tensors
    number = ctx.number
    if torch.is_grad_enabled():  # the kernels have no gradients of their own
        lists = [(gives, *ways[:2]), (more_gives, *ways[4:6])][:number]
        *of_gives, of_asks = _again(lists, asks, ctx.slope, grads)
    else:
        grads = [grad.contiguous() for grad in grads]
        given = (gives, more_gives, asks, *ways, alpha, more_alpha)
        *of_gives, of_asks = _attention_backward(*given, *grads, ctx.slope, number, ctx.hubs)
    return of_gives[0], of_gives[1] if number == 2 else None, of_asks, *(None,) * 11


def _again(lists, asks, slope, grads):
    """The gradients of the inputs that require one, in a form that can be differentiated again."""
    leaves = [*(gives for gives, _, _ in lists), asks]
    ends = [(source, groups(ptr, source.numel())) for _, source, ptr in lists]
    alphas = attention_plain(leaves[:-1], asks, ends, slope)
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    found = iter(torch.autograd.grad(alphas, wanted, grads[: len(lists)], create_graph=True))
    return [next(found) if leaf.requires_grad else None for leaf in leaves]


@torch.library.custom_op("idgnn::attention_backward", mutates_args=())
def _attention_backward(
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
    alpha: Tensor,
    more_alpha: Tensor,
    grad: Tensor,
    more_grad: Tensor,
    slope: float,
    number: int,
    hubs: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    from idgnn.layers.aggregation import kernels

    found, of_asks = kernels.attention_backward(
        [kernels.Given(gives, source, ptr), kernels.Given(more_gives, more_source, more_ptr)][:number],
        [(back_ptr, back_order), (more_back_ptr, more_back_order)][:number],
        asks,
        [alpha, more_alpha][:number],
        [grad, more_grad][:number],
        slope,
        hubs,
    )
    return found[0], found[1] if number == 2 else asks.new_empty(0), of_asks


@_attention_backward.register_fake
def _(gives, more_gives, asks, *rest):
    second = torch.empty_like(more_gives) if rest[-2] == 2 else asks.new_empty(0)
    return torch.empty_like(gives), second, torch.empty_like(asks)


_attention.register_autograd(_backward, setup_context=_save)
