"""Random numbers that depend on nothing but the seed of a run and what they are for.

Every epoch begins with a seed of its own, so a run that was interrupted needs no state of a generator to go on.
"""

from __future__ import annotations

import hashlib

import torch


def seed_of(seed: int, *purpose: str | int) -> int:
    """A seed for one purpose of one run, in 63 bits."""
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def seed_device(seed: int, device: torch.device) -> None:
    """Seeds what networks draw from, on the CPU and on a device.

    `torch.manual_seed` does so for all kinds of devices, there or not, and takes as long as half a recorded step.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        number = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[number].manual_seed(seed)


def generator_of(seed: int, *purpose: str | int) -> torch.Generator:
    """A generator on the CPU: the same numbers whatever the device."""
    return torch.Generator().manual_seed(seed_of(seed, *purpose))
