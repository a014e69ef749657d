"""What precedes an aggregation: one dtype for its inputs, kernels for its device, and smaller parts for hubs."""

from __future__ import annotations

import warnings
from functools import cache, reduce
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

PIECE = 256  # the most messages that one program of a kernel reads where there are hubs


def promote_dtypes(x: Tensor, *others: Tensor | None) -> tuple[Tensor, *tuple[Tensor | None, ...]]:
    """Converts all tensors to the smallest dtype that holds each of them."""
    if all(each is None or each.dtype == x.dtype for each in others):
        return x, *others
    dtype = reduce(torch.promote_types, (each.dtype for each in others if each is not None), x.dtype)
    return x.to(dtype), *(None if each is None else each.to(dtype) for each in others)


@cache
def kernels_on(device: torch.device) -> ModuleType | None:
    """The Triton kernels if they work on this device: a GPU, with Triton and the C compiler that it needs."""
    if device.type != "cuda":
        return None
    try:
        from idgnn.layers.aggregation import kernels

        one, zeros = torch.ones(1, 1, device=device), torch.zeros(2, dtype=torch.long, device=device)
        kernels.weighted_sum(one, zeros[:1], zeros)
    except Exception as error:  # for any reason: plain PyTorch computes the same
        warnings.warn(
            f"no Triton kernels on {device} ({type(error).__name__}: {error}). Layers run in plain PyTorch, with the "
            "same result, but slower. Triton comes with PyTorch for CUDA and needs a C compiler (CC or gcc).",
            stacklevel=2,
        )
        return None
    return kernels


@torch.compiler.assume_constant_result
def has_kernels(device: torch.device) -> bool:
    """Whether the Triton kernels work on this device; a constant for torch.compile."""
    return kernels_on(device) is not None


class Pieces(NamedTuple):
    """Runs of at most `PIECE` messages of one target each; some pieces at the end are empty."""

    number: Tensor  # [pieces] 0, 1, 2, ...
    ptr: Tensor  # [pieces + 1] where the messages of each piece begin
    owner: Tensor  # [pieces] the target of each piece; of the empty ones at the end, the number of targets
    first: Tensor  # [targets + 1] where the pieces of each target begin


def pieces(ptr: Tensor, num_messages: int) -> Pieces:
    """Splits the messages of each target, which begin at `ptr`, into pieces.

    A program of a kernel reads the messages of its target one after the other, a third of a microsecond each, and for a
    hub with thousands of them the rest of the GPU waits. So where there are hubs, a first round aggregates pieces, and
    a second, short round aggregates their results. Where there are none, one round is faster.
    """
    first = torch.zeros_like(ptr)
    torch.cumsum((ptr.diff() + PIECE - 1) // PIECE, 0, out=first[1:])
    # The most pieces that are possible: to read their actual number, the CPU would have to wait for the GPU.
    number = torch.arange(ptr.numel() + num_messages // PIECE, device=ptr.device)
    owner = torch.searchsorted(first, number, right=True) - 1
    begin = (ptr[owner] + (number - first[owner]) * PIECE).clamp(max=num_messages)
    return Pieces(number[:-1], begin, owner[:-1], first)
