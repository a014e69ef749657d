"""Logarithms of closed-walk counts, standardized over the training graphs: what ID-GNN-Fast is fed with."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idgnn.identity.cycle_features import count_statistics


class CountScale(nn.Module):
    r"""Subtracts the mean of each count and divides by its standard deviation:

    .. math:: x_{vk} = (\log(1 + (A^k)_{vv}) - \mu_k) / \sigma_k

    Both are buffers, so that they are saved with the weights, and are fitted once. Before that they are 0 and 1, as in
    BatchNorm. A count that is the same at all nodes, as that of self-loops where there are none, becomes 0.

    Args:
        length: The number of counts.

    Example:
        >>> scale = CountScale(2)
        >>> scale.fit(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
        >>> scale(torch.tensor([[7.0, 1.0, 6.0]]))  # the last two columns are the counts
        tensor([[ 7., -1.,  1.]])
    """

    mean: Tensor
    deviation: Tensor
    fitted: Tensor

    def __init__(self, length: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(length))
        self.register_buffer("deviation", torch.ones(length))
        self.register_buffer("fitted", torch.zeros((), dtype=torch.bool))

    def fit(self, counts: Tensor) -> None:
        """Takes mean and deviation of the counts of training nodes `[nodes, length]`, on a logarithmic scale."""
        mean, deviation = count_statistics(counts)
        self.mean.copy_(mean)
        self.deviation.copy_(deviation)
        self.fitted.fill_(True)

    def forward(self, x: Tensor) -> Tensor:
        """Features with counts behind them `[nodes, channels + length]`, the counts standardized."""
        features, counts = x.split([x.size(-1) - self.mean.numel(), self.mean.numel()], dim=-1)
        return torch.cat([features, (counts - self.mean) / self.deviation], dim=-1)
