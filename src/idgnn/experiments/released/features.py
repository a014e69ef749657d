"""The features of ID-GNN-Fast in the released code."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops

from idgnn.identity.cycle_features import cycle_features

LENGTH = 10
FREQUENCIES = 5
_WAVELENGTH = 10000.0


def return_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""Diagonals of powers of the normalised adjacency with self-loops: `[num_nodes, 10]`.

    .. math:: x^+_v[k] = \big((\hat D^{-1/2} (A + I) \hat D^{-1/2})^k\big)_{vv}
        = \big((\hat D^{-1} (A + I))^k\big)_{vv}, \qquad k = 1, \dots, 10

    The second form, a similar matrix with the same diagonals, is the probability that a lazy random walk is back.
    """
    with_loops, _ = add_remaining_self_loops(edge_index, num_nodes=num_nodes)
    return cycle_features(with_loops, num_nodes, LENGTH, "walk")


def waves(features: Tensor, scale: float) -> Tensor:
    r"""Each feature as 5 cosines, then 5 sines: `[num_nodes, channels]` to `[num_nodes, channels * 10]`.

    .. math:: \cos(s\, x\, 10000^{-i/5}), \quad \sin(s\, x\, 10000^{-i/5}), \qquad i = 0, \dots, 4

    The code's position encoding with 10 dimensions; :func:`scale_of` is its :math:`s`.
    """
    rate = _WAVELENGTH ** (-torch.arange(FREQUENCIES, device=features.device, dtype=features.dtype) / FREQUENCIES)
    angle = scale * features.unsqueeze(-1) * rate  # [num_nodes, channels, frequencies]
    return torch.cat([angle.cos(), angle.sin()], dim=-1).flatten(1)


def scale_of(features: Sequence[Tensor]) -> float:
    """Half the dimensions of the encoding over the largest feature there is in the whole dataset."""
    largest = max((float(each.max()) for each in features if each.numel()), default=1.0)
    return FREQUENCIES / largest
