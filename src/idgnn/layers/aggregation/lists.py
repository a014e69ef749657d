"""The messages of a round, plain and colored ones together."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency
from idgnn.identity.schedule import Messages, Round
from idgnn.layers.aggregation.dispatch import has_kernels


class TwoLists(NamedTuple):
    """Plain messages, and colored ones, whose sources are counted from row `split` on."""

    plain: Messages
    colored: Messages
    split: int


def together(round_: Round) -> Messages | TwoLists:
    """All messages of a round, from the rows of plain sources, of blocks and, behind them, of colored sources.

    Kernels read both lists in one launch. Elsewhere one list saves passes over the states of all targets, and merging
    costs some index arithmetic per message.
    """
    split = round_.split if round_.blocks is None else round_.split + round_.blocks.number.numel()
    if has_kernels(round_.previous.device):
        return TwoLists(round_.plain, round_.colored, split)
    if round_.num_sources == round_.split:
        return round_.plain
    return merged(round_.plain, round_.colored, split)


def merged(plain: Messages, colored: Messages, split: int) -> Messages:
    """One list: for each target its plain messages, then its colored ones. Padding stays behind all others."""
    sizes = plain.source.numel(), colored.source.numel()
    number = torch.arange(max(sizes), device=plain.source.device)
    # The place of each message: behind all messages of the targets before, and colored ones behind the plain ones.
    ptr, size = plain.ptr + colored.ptr, plain.ptr.new_full((1,), sizes[0])
    first = number[: sizes[0]] + colored.ptr.index_select(0, _targets(plain))
    second = number[: sizes[1]] + torch.cat([plain.ptr, size]).index_select(0, _targets(colored) + 1)
    source = _placed(first, plain.source, second, colored.source + split)
    edge = plain.edge
    if plain.edge.numel() + colored.edge.numel() == sum(sizes):  # else layers have no use for it
        edge = _placed(first, plain.edge, second, colored.edge)
    back, more = plain.back, colored.back
    if back.ptr.numel():  # else no gradients are needed
        end, more_end = back.ptr[-1:], more.ptr[-1:]
        sent = number[: sizes[0]] + torch.where(number[: sizes[0]] < end, 0, more_end)
        more_sent = number[: sizes[1]] + torch.where(number[: sizes[1]] < more_end, end, sizes[0])
        back = Adjacency(
            torch.cat([back.ptr, more.ptr[1:] + end]),
            _placed(sent, back.neighbor, more_sent, more.neighbor),
            _placed(sent, first.index_select(0, back.edge), more_sent, second.index_select(0, more.edge)),
        )
    return Messages(source, ptr, edge, back, plain.hubs or colored.hubs)


def _targets(messages: Messages) -> Tensor:
    """The target of each message, and the number of targets for padding."""
    ptr, size = messages.ptr, messages.source.numel()
    return torch.repeat_interleave(ptr.diff(append=ptr.new_full((1,), size)), output_size=size)


def _placed(first: Tensor, values: Tensor, second: Tensor, more_values: Tensor) -> Tensor:
    found = values.new_empty(values.numel() + more_values.numel())
    return found.index_copy_(0, first, values).index_copy_(0, second, more_values)
