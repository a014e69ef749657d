r"""The weights of attention: a softmax over the plain and colored messages of each target."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from idgnn.identity.adjacency import groups
from idgnn.identity.schedule import Messages, Round
from idgnn.layers.aggregation.dispatch import has_kernels


def attention(
    gives: list[Tensor], asks: Tensor, round_: Round, slope: float, scores: Tensor | None = None
) -> list[Tensor]:
    r""":math:`\alpha_{st} = \textsc{Softmax}_{s \to t} \textsc{LeakyReLU}(g_s + a_t)`, for each head.

    Args:
        gives: What plain sources give to their scores `[sources, heads]`, and what colored ones do if there are any.
        asks: What targets add to them `[targets, heads]`.
        round_: The messages.
        slope: Of the LeakyReLU.
        scores: Of the blocks of the round, as they are `[blocks, heads]`.

    Returns:
        The weights of plain messages `[messages, heads]` and, if there are any, of colored ones.
    """
    if asks.dtype in (torch.bfloat16, torch.float16):  # a softmax needs more digits
        wide = None if scores is None else scores.float()
        found = attention([each.float() for each in gives], asks.float(), round_, slope, wide)
        # Under autocast sums are in float32 as well; in a network of half precision what follows is not.
        return found if torch.is_autocast_enabled(asks.device.type) else [each.to(asks.dtype) for each in found]
    lists = [round_.plain, round_.colored][: len(gives)]
    if not has_kernels(asks.device) or asks.numel() == 0 or scores is not None:
        return attention_plain(gives, asks, [(each.source, each.target) for each in lists], slope, scores)
    gives = [each.contiguous() for each in gives]
    first, second = lists[0], lists[-1]
    hubs = first.hubs or second.hubs
    given = (gives[0], gives[-1], asks.contiguous(), *_indices(first), *_indices(second))
    found = _attention(*given, slope, len(gives), hubs)
    return list(found[: len(gives)])


def attention_plain(
    gives: list[Tensor],
    asks: Tensor,
    ends: list[tuple[Tensor, Tensor]],
    slope: float,
    scores: Tensor | None = None,
) -> list[Tensor]:
    """:func:`attention`, message by message; `ends` are the source and the target of each."""
    num_plain = gives[0].size(0)
    if scores is not None:
        gives = [torch.cat([gives[0], scores.to(gives[0].dtype)]), *gives[1:]]
    given = torch.cat([each.index_select(0, source) for each, (source, _) in zip(gives, ends, strict=True)])
    target = torch.cat([target for _, target in ends])
    score = leaky_relu(given + asks.index_select(0, target), slope)
    if scores is not None:
        size = ends[0][0].numel()
        of_block = (ends[0][0] >= num_plain).unsqueeze(-1)
        score = torch.cat([torch.where(of_block, given[:size], score[:size]), score[size:]])
    weight, total, _ = _exponentials(score, target, asks.size(0))
    return list((weight / total.index_select(0, target)).split([source.numel() for source, _ in ends]))


def attention_and_score(give: Tensor, asks: Tensor, messages: Messages, slope: float) -> tuple[Tensor, Tensor]:
    r"""The weights of messages, and :math:`\log \sum_{s \to t} \exp \textsc{LeakyReLU}(g_s + a_t)` of each target.

    So the softmax of several such targets together is one over their scores, times that within each. Every target
    receives a message.
    """
    dtype = asks.dtype
    if dtype in (torch.bfloat16, torch.float16):
        give, asks = give.float(), asks.float()
    target = messages.target
    score = leaky_relu(give.index_select(0, messages.source) + asks.index_select(0, target), slope)
    weight, total, highest = _exponentials(score, target, asks.size(0))
    alpha, together = weight / total.index_select(0, target), highest + total.log()
    if torch.is_autocast_enabled(asks.device.type):
        return alpha, together
    return alpha.to(dtype), together.to(dtype)


def _exponentials(score: Tensor, target: Tensor, num_targets: int) -> tuple[Tensor, Tensor, Tensor]:
    """Exponentials of scores, less the highest of their target; the sum and the highest score of each target."""
    index, none = target.unsqueeze(-1).expand_as(score), score.new_zeros(num_targets, score.size(1))
    highest = torch.full_like(none, float("-inf")).scatter_reduce(0, index, score.detach(), "amax")
    weight = (score - highest.index_select(0, target)).exp()
    return weight, none.index_add(0, target, weight), highest


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
