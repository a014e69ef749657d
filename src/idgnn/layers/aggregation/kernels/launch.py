"""How kernels are compiled and what a program of them has."""

from __future__ import annotations

from typing import Any

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

MESSAGES = 8  # of a target that are read at once, where that pays; most have fewer
MESSAGES_OF_HUBS = 256  # the same where some have thousands
WARPS = 2  # of a program that has one target and all channels


def jit(names: str) -> Any:
    """Compiles a kernel whose arguments have these names, once for all their values and alignments."""
    return triton.jit(do_not_specialize=names.split(), do_not_specialize_on_alignment=names.split())


def num_columns(x: Tensor) -> int:
    """How many channels a program has."""
    return min(max(triton.next_power_of_2(x.size(1)), 16), 256)


def part_type(x: Tensor) -> torch.dtype:
    """What sums of some messages are kept in until the others are added."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def total_type(x: Tensor) -> Any:
    """The same inside of a kernel."""
    return tl.float64 if part_type(x) == torch.float64 else tl.float32
