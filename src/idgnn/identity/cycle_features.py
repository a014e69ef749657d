"""Closed-walk counts on the scale that a network is fed with."""

from __future__ import annotations

from typing import get_args

from torch import Tensor

from idgnn.choices import CycleScale
from idgnn.identity.checks import check_count_options, check_edge_index
from idgnn.identity.cycle_counts import ADVICE, cycle_counts
from idgnn.identity.walks.closed_walks import closed_walks
from idgnn.identity.walks.exact_counts import check_finite


def cycle_features(
    edge_index: Tensor,
    num_nodes: int,
    length: int = 10,
    scale: CycleScale = "log",
    *,
    memory: int = 2**30,
    progress: bool = False,
) -> Tensor:
    r"""Closed walks of length k = 1 to `length` at every node, scaled: `[num_nodes, length]` in float64.

    =========== ================================ ==============================================================
    `scale`     column k                         for
    =========== ================================ ==============================================================
    `"counts"`  :math:`(A^k)_{vv}`               exact structure: see :func:`idgnn.cycle_counts`
    `"log"`     :math:`\log(1 + (A^k)_{vv})`     networks: counts grow as the k-th power of the degree
    `"walk"`    :math:`((D^{-1} A)^k)_{vv}`      networks: the probability that a random walk is back at step k
    =========== ================================ ==============================================================

    D holds the out-degrees, duplicates counted; a node without out-edges has probability 0.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> cycle_features(path, num_nodes=3, length=4, scale="walk")
        tensor([[0.0000, 0.5000, 0.0000, 0.5000],
                [0.0000, 1.0000, 0.0000, 1.0000],
                [0.0000, 0.5000, 0.0000, 0.5000]], dtype=torch.float64)
    """
    check_scale(scale)
    if scale == "counts":
        return cycle_counts(edge_index, num_nodes, length, memory=memory, progress=progress)
    check_edge_index(edge_index, num_nodes)
    check_count_options(num_nodes, length, memory)
    walks = closed_walks(edge_index, num_nodes, length, probabilities=scale == "walk", memory=memory, progress=progress)
    check_finite(walks, ADVICE)
    # A rounded count has the right logarithm, so nothing is said about 2^53 here.
    return walks.log1p() if scale == "log" else walks


def check_scale(scale: str) -> None:
    """Refuses a scale that does not exist."""
    if scale not in get_args(CycleScale):
        raise ValueError(f"scale is {scale!r}, expected one of {', '.join(map(repr, get_args(CycleScale)))}.")
