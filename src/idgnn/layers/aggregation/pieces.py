"""Targets with thousands of messages, taken apart.

A program reads the messages of its target one after the other, a third of a microsecond each, and while it is busy with
those of a hub the rest of the GPU waits. So where there are hubs, programs have pieces of at most `PIECE` messages, and
the results of the pieces are the messages of a second, short round. Where there are none one round is faster.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

PIECE = 256


class Pieces(NamedTuple):
    """Messages that belong to one target, at most `PIECE` each; some pieces at the end are empty."""

    number: Tensor  # [pieces] 0, 1, 2, ...
    ptr: Tensor  # [pieces + 1] where the messages of each begin
    owner: Tensor  # [pieces] the target of each; of the empty ones at the end, one more than there are
    first: Tensor  # [targets + 1] where the pieces of each target begin


def pieces(ptr: Tensor, num_messages: int) -> Pieces:
    """Takes targets apart whose messages begin at `ptr`."""
    first = torch.zeros_like(ptr)
    torch.cumsum((ptr.diff() + PIECE - 1) // PIECE, 0, out=first[1:])
    # As many as there can be: to find out how many there are, the GPU would have to be waited for.
    number = torch.arange(ptr.numel() + num_messages // PIECE, device=ptr.device)
    owner = torch.searchsorted(first, number, right=True) - 1
    begin = (ptr[owner] + (number - first[owner]) * PIECE).clamp(max=num_messages)
    return Pieces(number[:-1], begin, owner[:-1], first)
