"""Layers that hold the weights of several copies of a network, which train side by side.

The copies are the folds of a cross-validation: independent networks of the same shape. Small networks leave a GPU idle;
ten of them in one matrix product do not. The first dimension of every tensor is the copy.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class StackedLinear(nn.Module):
    r"""One linear layer per copy, :math:`\mathbf{y} = \mathbf{W}_k \mathbf{x} + \mathbf{b}_k`.

    Weights and biases start uniform in :math:`\pm 1 / \sqrt{in}`, as in PyTorch.

    Example:
        >>> StackedLinear(10, 3, 4)(torch.ones(10, 7, 3)).shape
        torch.Size([10, 7, 4])
    """

    def __init__(self, copies: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(in_channels)
        self.weight = nn.Parameter(torch.empty(copies, out_channels, in_channels).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(copies, out_channels).uniform_(-bound, bound))

    def xavier(self) -> StackedLinear:
        """The same layer with Xavier-uniform weights and biases of zero."""
        bound = math.sqrt(6 / (self.weight.size(1) + self.weight.size(2)))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """`[copies, rows, in_channels]` to `[copies, rows, out_channels]`."""
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.transpose(1, 2))

    def along_channels(self, x: Tensor) -> Tensor:
        """`[copies, in_channels, ...]` to `[copies, out_channels, ...]`: what is called a 1x1 convolution."""
        return torch.baddbmm(self.bias.unsqueeze(2), self.weight, x.flatten(2)).unflatten(2, x.shape[2:])


class StackedBatchNorm(nn.Module):
    """BatchNorm per copy, over the rows that a mask marks: the others are padding.

    Example:
        >>> x, mask = torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.bool)
        >>> bool(StackedBatchNorm(2, 3)(x, mask).mean(1).abs().max() < 1e-6)
        True
    """

    def __init__(self, copies: int, channels: int, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(copies, 1, channels))
        self.bias = nn.Parameter(torch.zeros(copies, 1, channels))
        self.mean: Tensor
        self.var: Tensor
        self.register_buffer("mean", torch.zeros(copies, 1, channels))
        self.register_buffer("var", torch.ones(copies, 1, channels))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`[copies, rows, channels]` and the real rows `[copies, rows]`."""
        if self.training:
            real = mask.unsqueeze(-1).to(x.dtype)
            number = real.sum(1, keepdim=True).clamp(min=1)
            mean = (x * real).sum(1, keepdim=True) / number
            var = ((x - mean).square() * real).sum(1, keepdim=True) / number
            with torch.no_grad():
                self.mean.lerp_(mean, self.momentum)
                self.var.lerp_(var * number / (number - 1).clamp(min=1), self.momentum)
        else:
            mean, var = self.mean, self.var
        return (x - mean) * (self.weight * (var + self.eps).rsqrt()) + self.bias
