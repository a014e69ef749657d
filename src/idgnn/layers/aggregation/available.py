"""Whether the Triton kernels can be used on a device."""

from __future__ import annotations

import warnings
from functools import cache
from types import ModuleType

import torch


@cache
def kernels_on(device: torch.device) -> ModuleType | None:
    """The kernels, if they work there: it must be a GPU, and Triton may be missing, or the C compiler that it needs."""
    if device.type != "cuda":
        return None
    try:
        from idgnn.layers.aggregation import kernels

        one, zeros = torch.ones(1, 1, device=device), torch.zeros(2, dtype=torch.long, device=device)
        kernels.weighted_sum(one, zeros[:1], zeros)
    except Exception as error:  # whatever it is, PyTorch alone can do it
        warnings.warn(
            f"no Triton kernels on {device} ({type(error).__name__}: {error}). Layers run in plain PyTorch, with the "
            "same result, but slower. Triton comes with PyTorch for CUDA and needs a C compiler (CC or gcc).",
            stacklevel=2,
        )
        return None
    return kernels


@torch.compiler.assume_constant_result
def has_kernels(device: torch.device) -> bool:
    """Whether there are any; torch.compile asks once."""
    return kernels_on(device) is not None
