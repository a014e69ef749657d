"""Which nodes a walk can connect, and which nodes no walk can distinguish."""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.identity.adjacency import pointers


def contiguous_blocks(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Numbers the runs of consecutive nodes that no edge leaves: `[num_nodes]` ids that never decrease.

    A PyG batch has such a boundary after each of its graphs. Linear in the edges; a block may hold several components.

    Example:
        >>> contiguous_blocks(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 4]), num_nodes=5)
        tensor([0, 0, 1, 2, 2])
    """
    opened = torch.bincount(torch.minimum(source, target), minlength=num_nodes)
    closed = torch.bincount(torch.maximum(source, target), minlength=num_nodes)
    last = (opened - closed).cumsum(0) == 0  # no edge connects the nodes up to here with those after
    return last.cumsum(0) - last.long()


def connected_components(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Numbers the connected components, for any order of the nodes and any direction of the edges: `[num_nodes]`.

    Every node points at a smaller or equal one of its component. A round lets the node that one end of an edge points
    at point at the smaller of the two nodes that both ends point at, and halves all paths; about log2(num_nodes)
    rounds reach the smallest node of every component.

    Example:
        >>> connected_components(torch.tensor([0, 3]), torch.tensor([2, 1]), num_nodes=5)
        tensor([0, 1, 0, 1, 2])
    """
    parent = torch.arange(num_nodes, device=source.device)
    while True:
        of_source, of_target = parent[source], parent[target]
        low = torch.minimum(of_source, of_target)
        lowered = parent.scatter_reduce(0, of_source, low, "amin").scatter_reduce(0, of_target, low, "amin")
        lowered = lowered[lowered]
        if torch.equal(lowered, parent):
            return torch.unique(parent, return_inverse=True)[1]
        parent = lowered


def twins(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    r"""The representative of each node: the first node with the same in-edges and the same out-edges.

    Rows and columns of :math:`A` are equal for twins, so those of :math:`A^k` are too, for every :math:`k \ge 1`: one
    of them is counted for all. The leaves of a hub are twins. A third of the nodes of PubMed have an earlier twin, and
    three fifths of those of the social network soc-douban.

    Example:
        >>> star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
        >>> twins(*star, num_nodes=4)
        tensor([0, 1, 1, 1])
    """
    # The sum of a fixed random number for each neighbor, modulo 2^64, proposes the classes; the lists are compared.
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
    """Whether each node has the same targets as the node `other[node]`, duplicates counted: `[num_nodes]`."""
    num_nodes = other.numel()
    key = (source * num_nodes + target).sort().values
    source, target = key.div(num_nodes, rounding_mode="floor"), key % num_nodes
    ptr = pointers(source, num_nodes)
    degree = ptr.diff()
    same = degree == degree[other]
    edge = same[source].nonzero().flatten()
    partner = edge - ptr[source[edge]] + ptr[other[source[edge]]]  # the edge at the same position of the other list
    unequal = edge[target[edge] != target[partner]]
    same[source[unequal]] = False
    return same
