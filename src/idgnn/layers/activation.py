"""The nonlinearity of a network."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu, silu

from idgnn.choices import Activation

MODULES: dict[Activation, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}
"""Each as a module, for an `nn.Sequential`."""


def activate(x: Tensor, act: Activation, overwrite: bool = False) -> Tensor:
    """The nonlinearity of `x`; `overwrite` says that nothing else needs `x`, so that ReLU takes no memory.

    Example:
        >>> import torch
        >>> activate(torch.tensor([-1.0, 2.0]), "relu")
        tensor([0., 2.])
    """
    if act == "relu":
        return x.relu_() if overwrite else x.relu()
    return gelu(x) if act == "gelu" else silu(x)
