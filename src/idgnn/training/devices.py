"""Which device a run uses, and what it says when its memory is full."""

from __future__ import annotations

import torch

from idgnn.identity.cost import TooLargeError


def choose_device(name: str) -> torch.device:
    """The device of that name; `"auto"` is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):  # which lists twenty devices that nobody here has
        raise _refusal(name, "there is none of that name; GPUs are called cuda or cuda:1") from None
    if device.type == "mps":
        raise _refusal(name, "it has no 64-bit numbers, which counts and metrics are made of")
    if device.type == "meta":
        raise _refusal(name, "it holds no numbers")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # PyTorch without CUDA asserts
        raise _refusal(name, str(error).splitlines()[0]) from None
    return device


def _refusal(name: str, reason: str) -> ValueError:
    return ValueError(f"device {name!r} cannot be used here ({reason}). Use cpu, or auto to let it be chosen.")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is full: that of a GPU, of the CPU, or by our own estimate."""
    if isinstance(error, (torch.OutOfMemoryError, TooLargeError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
