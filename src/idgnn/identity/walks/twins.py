"""Nodes that no walk can tell apart, so that one of them can be counted for all."""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.identity.adjacency import pointers


def twins(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    r"""The representative of each node: the first node with the same in-edges and the same out-edges.

    Rows and columns of :math:`A` are equal for twins, so :math:`A^k` is too for every :math:`k \ge 1`. All the leaves
    of a hub are twins; in social networks most nodes have one.

    Example:
        >>> star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
        >>> twins(*star, num_nodes=4)
        tensor([0, 1, 1, 1])
    """
    # A fixed random number for each neighbor, added up modulo 2^64, proposes the classes; the lists decide.
    label = torch.randint(-(2**63), 2**63 - 1, (2, num_nodes), generator=torch.Generator().manual_seed(0))
    label = label.to(source.device)
    hashed = torch.zeros(num_nodes, dtype=torch.long, device=source.device)
    hashed.index_add_(0, source, label[0][target]).index_add_(0, target, label[1][source])
    _, group = torch.unique(hashed, return_inverse=True)
    node = torch.arange(num_nodes, device=source.device)
    first = torch.full_like(node, num_nodes).scatter_reduce(0, group, node, "amin")[group]
    same = _same_neighbors(source, target, first) & _same_neighbors(target, source, first)
    return torch.where(same, first, node)


def _same_neighbors(source: Tensor, target: Tensor, other: Tensor) -> Tensor:
    """Whether the targets of each node are those of the node `other` names, duplicates counted."""
    num_nodes = other.numel()
    key = (source * num_nodes + target).sort().values
    source, target = key.div(num_nodes, rounding_mode="floor"), key % num_nodes
    ptr = pointers(source, num_nodes)
    degree = ptr.diff()
    same = degree == degree[other]
    edge = same[source].nonzero().flatten()
    partner = edge - ptr[source[edge]] + ptr[other[source[edge]]]  # the edge at the same place of the other's list
    unequal = edge[target[edge] != target[partner]]
    same[source[unequal]] = False
    return same
