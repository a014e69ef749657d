"""Where an edge ranks among the non-edges of its graph."""

from __future__ import annotations

import torch
from torch import Tensor


def ranks(score: Tensor, target: Tensor, graph: Tensor) -> Tensor:
    """The rank of every positive among the negatives of its graph, from 1: `[positives]` in float64.

    A positive that ties with negatives gets the middle of the best and the worst place it could have. One sort of all
    scores takes the place of a comparison of every positive with every negative.
    """
    positive = target.bool()
    # Scores become their place in the order of all scores, so that graph and score fit into one whole number.
    order = torch.unique(score, return_inverse=True)[1]
    size = int(order.max()) + 1 if order.numel() else 1
    key = graph * size + order
    negative = key[~positive].sort().values
    last_of_graph = torch.searchsorted(negative, (graph[positive] + 1) * size)
    above = last_of_graph - torch.searchsorted(negative, key[positive], right=True)
    not_below = last_of_graph - torch.searchsorted(negative, key[positive])
    return 1 + (above + not_below).double() / 2
