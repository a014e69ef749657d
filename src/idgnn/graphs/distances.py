"""Distances of many pairs of nodes, in many graphs at once, exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

_AT_ONCE = 1 << 22  # words of bit sets gathered along edges in one step: bounds the memory to some 100 MB


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
        while last < len(graphs) and (last == first or words < _AT_ONCE):
            words += graphs[last].num_edges * (1 + min(pairs[last].size(1), int(graphs[last].num_nodes or 0)) // 64)
            last += 1
        result += _search(graphs[first:last], pairs[first:last], cutoff)
        first = last
    return result


def _search(graphs: Sequence[Data], pairs: Sequence[Tensor], cutoff: int) -> list[Tensor]:
    num_nodes = np.array([int(graph.num_nodes or 0) for graph in graphs])
    num_pairs = [each.size(1) for each in pairs]
    offset = np.cumsum(num_nodes) - num_nodes
    node, root = torch.cat(list(pairs), dim=1).numpy() + np.repeat(offset, num_pairs)
    source, target = _edges_by_target(graphs, offset)

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


def _edges_by_target(graphs: Sequence[Data], offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets of all edges, with the node ids of all graphs together, sorted by target."""
    parts = [
        graph.edge_index.cpu().numpy() + first
        for graph, first in zip(graphs, offset, strict=True)
        if graph.edge_index is not None
    ]
    source, target = np.concatenate([np.zeros((2, 0), np.int64), *parts], axis=1)
    order = np.argsort(target, kind="stable")
    return source[order], target[order]
