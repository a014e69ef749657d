"""Equal numbers of parameters: how the paper compares architectures fairly."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def num_parameters(module: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def match_budget(build: Callable[[int], nn.Module], target: int | nn.Module, tolerance: float = 0.01) -> int:
    """The width at which a network has as many parameters as asked for.

    Nothing is allocated: the networks are built on PyTorch's meta device.

    Args:
        build: Makes the network of a given width; its number of parameters must grow with the width. Where not every
            width will do, let it take steps: `lambda step: IDGNN(1, 4 * step, 10, conv="gat", heads=4)`.
        target: The number of parameters, or a network that has it, for example a GCN of width 256.
        tolerance: The relative difference that is accepted.

    Example:
        >>> from idgnn import IDGNN
        >>> gcn = IDGNN(1, 256, 10, conv="gcn", identity="none")
        >>> match_budget(lambda width: IDGNN(1, width, 10, conv="gcn", identity="full"), gcn)
        149
    """
    wanted = num_parameters(target) if isinstance(target, nn.Module) else target

    def count(width: int) -> int:
        with torch.device("meta"):
            return num_parameters(build(width))

    low, high = 1, 2
    while count(high) < wanted:
        if count(2 * high) <= count(high):
            raise ValueError(
                f"the network has {count(high):,} parameters at width {high} and no more at twice that: it does not "
                "grow with the width. Let `build` use the width it is given."
            )
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < wanted else (low, middle)
    width = min((low, high), key=lambda w: abs(count(w) - wanted))
    if abs(count(width) - wanted) > tolerance * wanted:
        raise ValueError(
            f"no width gives {wanted:,} parameters to within {tolerance:.0%}: width {low} has {count(low):,} and width "
            f"{high} has {count(high):,}. Ask for more parameters, or in Python for a larger tolerance."
        )
    return width
