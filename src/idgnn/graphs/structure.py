"""Properties of the structure, exact, of many graphs at once: clustering coefficients, distances, repeated edges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

_STEP = 1 << 22  # pairs of edges, or words of bit sets, looked at in one step: bounds the memory to some 200 MB


def clustering_coefficients(data: Data) -> Tensor:
    r"""The fraction of pairs of neighbors of each node that are neighbors themselves: float64 `[num_nodes]`.

    .. math:: c_v = \frac{2 T_v}{d_v (d_v - 1)}, \quad 0 \text{ where } d_v < 2

    for :math:`T_v` triangles and :math:`d_v` neighbors. It is a property of the simple undirected graph: directions,
    self-loops and repeated edges do not count.

    Example:
        >>> paw = Data(edge_index=torch.tensor([[0, 1, 2, 2], [1, 2, 0, 3]]), num_nodes=4)
        >>> clustering_coefficients(paw)
        tensor([1.0000, 1.0000, 0.3333, 0.0000], dtype=torch.float64)
    """
    return clustering_of([data])[0]


def clustering_of(graphs: Sequence[Data]) -> list[Tensor]:
    """:func:`clustering_coefficients` of each graph, computed for all of them together."""
    edge_index, sizes, _ = _stacked(graphs)
    return list(torch.from_numpy(_coefficients(edge_index, int(sizes.sum()))).split(sizes.tolist()))


def distances(graphs: Sequence[Data], pairs: Sequence[Tensor], cutoff: int) -> list[Tensor]:
    """For each graph and each of its pairs `[2, P]` the distance to the first node from the second, at most `cutoff`.

    Without a path it is -1. Edges are followed from source to target. A breadth-first search from all second nodes of
    all graphs at once: node `u` holds the set of nodes that have reached it, a bit for each, and every step unites it
    with the sets of its in-neighbors. It takes as many steps as the longest of the shortest paths.
    """
    result: list[Tensor] = []
    first = 0
    while first < len(graphs):
        last, words = first, 0
        while last < len(graphs) and (last == first or words < _STEP):
            words += graphs[last].num_edges * (1 + min(pairs[last].size(1), int(graphs[last].num_nodes or 0)) // 64)
            last += 1
        result += _search(graphs[first:last], pairs[first:last], cutoff)
        first = last
    return result


def num_repeated_edges(edge_index: Tensor, num_nodes: int) -> int:
    """How many edges repeat an earlier edge with the same ends."""
    source, target = edge_index
    key = (source * num_nodes + target).sort().values
    return int((key[1:] == key[:-1]).sum())


def _stacked(graphs: Sequence[Data]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges `[2, edges]` with the node ids of all graphs together, and the size and first node of each graph."""
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs], np.int64)
    offset = np.cumsum(sizes) - sizes
    edges = [
        graph.edge_index.cpu().numpy() + first
        for graph, first in zip(graphs, offset, strict=True)
        if graph.edge_index is not None
    ]
    return np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1), sizes, offset


def _coefficients(edge_index: np.ndarray, num_nodes: int) -> np.ndarray:
    """Counts each triangle once, from its node of least degree: O(edges^1.5) steps at most."""
    low, high = edge_index.min(axis=0), edge_index.max(axis=0)
    low, high = np.divmod(np.unique((low * num_nodes + high)[low != high]), max(num_nodes, 1))
    degree = np.bincount(np.concatenate([low, high]), minlength=num_nodes)
    # Each edge points from the lesser to the greater node in the order of (degree, id): no node has many such edges.
    rank = np.empty(num_nodes, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(num_nodes)
    tail, head = np.minimum(rank[low], rank[high]), np.maximum(rank[low], rank[high])
    keys = np.sort(tail * num_nodes + head)
    tail, head = np.divmod(keys, max(num_nodes, 1))
    start = np.searchsorted(tail, np.arange(num_nodes + 1))
    follow = np.diff(start)[head]  # how many edges start at the head of each edge
    triangles = np.zeros(num_nodes, np.int64)
    steps = np.searchsorted(np.cumsum(follow), np.arange(0, follow.sum(), _STEP))
    for first, last in pairwise(np.unique([*steps, len(keys)])):
        several = follow[first:last]
        edge = np.repeat(np.arange(first, last), several)  # tail -> middle
        place = np.arange(several.sum()) - np.repeat(np.cumsum(several) - several, several)
        end = head[start[head[edge]] + place]  # middle -> end
        closing = tail[edge] * num_nodes + end
        found = np.searchsorted(keys, closing)
        closed = keys[np.minimum(found, len(keys) - 1)] == closing
        for corner in (tail[edge], head[edge], end):
            triangles += np.bincount(corner[closed], minlength=num_nodes)
    pairs = degree * (degree - 1)
    return np.divide(2.0 * triangles[rank], pairs, out=np.zeros(num_nodes), where=pairs > 0)


def _search(graphs: Sequence[Data], pairs: Sequence[Tensor], cutoff: int) -> list[Tensor]:
    (source, target), num_nodes, offset = _stacked(graphs)
    order = np.argsort(target, kind="stable")
    source, target = source[order], target[order]
    num_pairs = [each.size(1) for each in pairs]
    node, root = torch.cat(list(pairs), dim=1).numpy() + np.repeat(offset, num_pairs)

    # Roots are numbered within their graph, so that the sets are no longer than the graph with most roots needs.
    roots, which = np.unique(root, return_inverse=True)
    bit = np.arange(roots.size) - np.searchsorted(roots, offset)[np.searchsorted(offset, roots, side="right") - 1]
    reached = np.zeros((num_nodes.sum(), bit.max(initial=0) // 64 + 1), np.uint64)
    reached[roots, bit // 64] = np.uint64(1) << (bit % 64).astype(np.uint64)
    word, shift = bit[which] // 64, (bit[which] % 64).astype(np.uint64)

    result = np.full(root.size, -1)
    open_ = np.arange(root.size)
    starts = np.flatnonzero(np.diff(target, prepend=-1))
    receivers = target[starts]
    for depth in range(num_nodes.sum() + 1):
        there = (reached[node[open_], word[open_]] >> shift[open_]) & np.uint64(1) == 1
        result[open_[there]] = min(depth, cutoff)
        open_ = open_[~there]
        if not open_.size or not source.size:
            break
        more = reached[receivers] | np.bitwise_or.reduceat(reached[source], starts, axis=0)
        if np.array_equal(more, reached[receivers]):
            break
        reached[receivers] = more
    return list(torch.from_numpy(result).split(num_pairs))
