"""How many closed walks of each length start at each node: the features of ID-GNN-Fast."""

from __future__ import annotations

from torch import Tensor

from idgnn.identity.checks import check_count_options, check_edge_index
from idgnn.identity.walks.closed_walks import closed_walks
from idgnn.identity.walks.exact_counts import check_exact

# What a caller reads who asks for more than float64 holds.
ADVICE = 'count shorter walks; as features of a network the scale "log" and, for any length, "walk" stay small'


def cycle_counts(
    edge_index: Tensor, num_nodes: int, length: int, *, memory: int = 2**30, progress: bool = False
) -> Tensor:
    r"""Counts the closed walks of length 1 to `length` at every node, the features of ID-GNN-Fast.

    .. math:: x^+_v[k] = (A^k)_{vv}, \qquad A_{st} = \text{the number of edges from } s \text{ to } t

    Directed edges, duplicates and self-loops count as they stand. Graphs of a batch cost what they cost alone: give the
    `edge_index` of the whole batch.

    Args:
        edge_index: `[2, num_edges]`, on any device.
        num_nodes: the number of nodes, isolated ones included.
        length: the longest walk.
        memory: bytes that the working state may take beside the graph and the result; a single column of the largest
            component is always allowed.
        progress: show a progress bar.

    Returns:
        `[num_nodes, length]` in float64. Counts below 2^53 are exact, and a warning tells when one is not.

    Example:
        Two triangles that share node 0:

        >>> import torch
        >>> edges = torch.tensor([[0, 1, 2, 0, 3, 4], [1, 2, 0, 3, 4, 0]])
        >>> cycle_counts(torch.cat([edges, edges.flip(0)], dim=1), num_nodes=5, length=4)
        tensor([[ 0.,  4.,  4., 20.],
                [ 0.,  2.,  2.,  8.],
                [ 0.,  2.,  2.,  8.],
                [ 0.,  2.,  2.,  8.],
                [ 0.,  2.,  2.,  8.]], dtype=torch.float64)
    """
    check_edge_index(edge_index, num_nodes)
    check_count_options(num_nodes, length, memory)
    counts = closed_walks(edge_index, num_nodes, length, probabilities=False, memory=memory, progress=progress)
    check_exact(counts, "closed-walk counts", ADVICE)
    return counts
