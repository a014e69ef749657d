"""In which precision a network multiplies matrices while it is trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_TENSOR_CORES = (8, 0)  # the first GPUs (Ampere) whose tensor cores multiply in TF32


def check_precision(precision: str, device: torch.device) -> None:
    """Refuses TF32 where PyTorch would take no notice of it."""
    if precision != "tf32":
        return
    if device.type != "cuda":
        raise ValueError(
            f"precision is 'tf32', a format of NVIDIA GPUs, but the device is {device}. Leave it out, or train on CUDA."
        )
    found = torch.cuda.get_device_capability(device)
    if found < _TENSOR_CORES:
        raise ValueError(
            f"precision is 'tf32', which GPUs have from compute capability 8.0 on, but {device} has "
            f"{found[0]}.{found[1]}. Leave it out."
        )


@contextmanager
def tf32_products(enabled: bool = True) -> Iterator[None]:
    """Products of float32 matrices in TF32: factors with 10 bits behind the point, in place of 23, sums in float32.

    Only CUDA has it. The backward pass belongs inside: unlike autocast, a product there does not follow its forward
    pass. A step that is recorded here is replayed the same way.
    """
    if not enabled:
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
