"""Edges that a graph has more than once."""

from __future__ import annotations

import torch
from torch import Tensor


def num_repeats(edge_index: Tensor, num_nodes: int) -> int:
    """How many edges are there already, with the same ends."""
    source, target = edge_index
    return source.numel() - torch.unique(source * num_nodes + target).numel()
