"""Ranking by scores of pairs of a candidate and a root: the loss, and the best candidates of each root.

Scores come from a :class:`idgnn.PairHead` with one output.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import softmax


def ranking_loss(score: Tensor, root: Tensor, positive: Tensor) -> Tensor:
    r"""The mean over positive pairs of :math:`-\log \textsc{Softmax}` of their score among the candidates of the root.

    Args:
        score: `[pairs]`.
        root: The root of each pair `[pairs]`.
        positive: Whether the candidate is one that should come first `[pairs]`.

    Example:
        >>> root, positive = torch.tensor([4, 4, 9]), torch.tensor([True, False, True])
        >>> f"{float(ranking_loss(torch.zeros(3), root, positive)):.4f}"  # (log 2 + log 1) / 2
        '0.3466'
    """
    if not bool(positive.any()):
        raise ValueError("no pair is positive, expected at least one of each root that is ranked.")
    number = torch.unique(root, return_inverse=True)[1]
    share = softmax(score.float(), number)
    return -share[positive].clamp(min=torch.finfo(share.dtype).tiny).log().mean()


def best_candidates(score: Tensor, root: Tensor, candidate: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The `k` candidates of each root with the highest scores: roots `[roots]`, candidates `[roots, k]`.

    Roots are sorted; where a root has fewer candidates, -1 follows. Of equal scores the lower candidate comes first.

    Example:
        >>> score, root = torch.tensor([0.1, 0.7, 0.2]), torch.tensor([5, 5, 8])
        >>> best_candidates(score, root, torch.tensor([0, 1, 0]), k=2)
        (tensor([5, 8]), tensor([[ 1,  0],
                [ 0, -1]]))
    """
    order = torch.argsort(candidate, stable=True)
    order = order[torch.argsort(score[order], descending=True, stable=True)]
    order = order[torch.argsort(root[order], stable=True)]
    roots, number, count = torch.unique_consecutive(root[order], return_inverse=True, return_counts=True)
    place = torch.arange(order.numel(), device=order.device) - (count.cumsum(0) - count)[number]
    kept = place < k
    found = candidate.new_full((roots.numel(), k), -1)
    found[number[kept], place[kept]] = candidate[order][kept]
    return roots, found
