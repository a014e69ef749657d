"""Trying a module out without leaving a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def quiet(module: nn.Module, device: torch.device) -> Iterator[None]:
    """Within the block `module` is in evaluation mode and nothing is recorded for a backward pass; afterwards its modes
    and the random number generators are as before, and autocast remembers no weights from here.

    Example:
        >>> net = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()).train()
        >>> with quiet(net, torch.device("cpu")):
        ...     _ = net(torch.randn(3, 2))
        >>> net.training, net[0].running_mean.tolist()
        (True, [0.0, 0.0])
    """
    modes = [(child, child.training) for child in module.modules()]
    accelerated = [] if device.type == "cpu" else [device]
    caches = torch.is_autocast_cache_enabled()
    with torch.no_grad(), torch.random.fork_rng(accelerated, device_type=device.type if accelerated else "cuda"):
        module.eval()
        torch.set_autocast_cache_enabled(False)
        try:
            yield
        finally:
            torch.set_autocast_cache_enabled(caches)
            for child, training in modes:
                child.training = training
