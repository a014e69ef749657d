r"""The weights of attention: a softmax over the messages of each target."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from idgnn.identity.schedule import Messages
from idgnn.layers.aggregation.lists import TwoLists


def attention(
    gives: Tensor,
    asks: Tensor,
    messages: Messages | TwoLists,
    slope: float,
    blocks: tuple[int, int] | None = None,
) -> Tensor:
    r""":math:`\alpha_{st} = \textsc{Softmax}_{s \to t} \textsc{LeakyReLU}(g_s + a_t)`, for each head.

    Args:
        gives: What sources give to their scores `[sources, heads]`.
        asks: What targets add to them `[targets, heads]`.
        messages: Which source sends to which target.
        slope: Of the LeakyReLU.
        blocks: The first of the sources that are blocks of messages, and the first behind them. What they give is their
            score as it is.

    Returns:
        The weights of messages `[messages, heads]`; of two lists, those of the second one are last.
    """
    dtype = asks.dtype
    if dtype in (torch.bfloat16, torch.float16):  # a softmax needs more digits
        found = attention(gives.float(), asks.float(), messages, slope, blocks)
        # Under autocast sums are in float32 as well; in a network of half precision what follows is not.
        return found if torch.is_autocast_enabled(asks.device.type) else found.to(dtype)
    source, target = ends(messages)
    given = gives.index_select(0, source)
    score = leaky_relu(given + asks.index_select(0, target), slope)
    if blocks is not None:
        of_block = (source >= blocks[0]) & (source < blocks[1])
        score = torch.where(of_block.unsqueeze(-1), given, score)
    weight, total, _ = _exponentials(score, target, asks.size(0))
    return weight / total.index_select(0, target)


def ends(messages: Messages | TwoLists) -> tuple[Tensor, Tensor]:
    """The source and the target of each message; of two lists, those of the second one are last."""
    if not isinstance(messages, TwoLists):
        return messages.source, messages.target
    plain, colored, split = messages
    return torch.cat([plain.source, colored.source + split]), torch.cat([plain.target, colored.target])


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
