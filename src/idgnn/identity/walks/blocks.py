"""Which nodes a walk can join: the independent blocks of a graph, found without a loop over its nodes."""

from __future__ import annotations

import torch
from torch import Tensor


def contiguous_blocks(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Numbers the runs of consecutive nodes that no edge leaves, as `[num_nodes]` ids that never decrease.

    A PyG batch has such a cut after each of its graphs. Linear in the edges; a block may hold several components.

    Example:
        >>> contiguous_blocks(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 4]), num_nodes=5)
        tensor([0, 0, 1, 2, 2])
    """
    opened = torch.bincount(torch.minimum(source, target), minlength=num_nodes)
    closed = torch.bincount(torch.maximum(source, target), minlength=num_nodes)
    cut = (opened - closed).cumsum(0) == 0  # no edge joins the nodes up to here with those after
    return cut.cumsum(0) - cut.long()


def connected_components(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Numbers the connected components, whatever the order of their nodes and the direction of their edges.

    Every node points at a smaller one of its component. A round hooks the node that one end of an edge points at below
    the node that the other end points at, and halves all paths; a few rounds (about log2 of the nodes) reach the roots.

    Example:
        >>> connected_components(torch.tensor([0, 3]), torch.tensor([2, 1]), num_nodes=5)
        tensor([0, 1, 0, 1, 2])
    """
    parent = torch.arange(num_nodes, device=source.device)
    while True:
        above, beside = parent[source], parent[target]
        low = torch.minimum(above, beside)
        hooked = parent.scatter_reduce(0, above, low, "amin").scatter_reduce(0, beside, low, "amin")
        hooked = hooked[hooked]
        if torch.equal(hooked, parent):
            return torch.unique(parent, return_inverse=True)[1]
        parent = hooked
