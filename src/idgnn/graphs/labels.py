"""Labels from the structure of a graph: clustering coefficients and distances, in classes."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.structure import clustering_of, distances


def node_clustering(graphs: Sequence[Data], bins: int = 10) -> list[Data]:
    """Copies with `y` `[num_nodes]`: the clustering coefficient of each node, in quantile bins over all nodes.

    Ties leave fewer than ten classes: 6 on ScaleFree, SmallWorld, ENZYMES, ba and ws, 7 on PROTEINS, and a single one
    on BZR, COX2, MUTAG and PTC_MR, where hardly any node is part of a triangle. See :func:`quantile_bins`.
    """
    values = clustering_of(graphs)
    labels = quantile_bins(torch.cat([torch.empty(0, dtype=torch.float64), *values]), bins)
    return _labeled(graphs, labels.split([each.numel() for each in values]))


def graph_clustering(graphs: Sequence[Data], bins: int = 10) -> list[Data]:
    """Copies with `y` `[1]`: the average clustering coefficient of each graph, in quantile bins over all graphs.

    These are 10 classes of almost equal sizes on the datasets of the paper; ties leave fewer on others.
    """
    # Correctly rounded sums do not depend on the order of the nodes: isomorphic graphs get the same label.
    means = [math.fsum(each.tolist()) / max(each.numel(), 1) for each in clustering_of(graphs)]
    return _labeled(graphs, quantile_bins(torch.tensor(means, dtype=torch.float64), bins).split(1))


def shortest_paths(graphs: Sequence[Data], pairs: int = 1000, cutoff: int = 4, seed: int = 0) -> list[Data]:
    r"""Copies with pairs of nodes and the distance between them, :math:`\min(d, cutoff)`.

    `edge_label_index` `[2, P]` holds ordered pairs drawn uniformly with replacement, a node and itself allowed, and
    `edge_label` `[P]` their labels, `cutoff + 1` classes. The distance is counted along the messages, from the colored
    node `edge_label_index[1]` to the node `edge_label_index[0]` that is read. Pairs without a path are dropped, so `P`
    is at most `pairs`.
    """
    if pairs < 1 or cutoff < 1:
        raise ValueError(f"pairs is {pairs} and cutoff is {cutoff}, expected at least 1 of both.")
    generator = torch.Generator().manual_seed(seed)
    drawn = [
        torch.randint(max(nodes, 1), (2, pairs if nodes else 0), generator=generator)
        for nodes in (int(graph.num_nodes or 0) for graph in graphs)
    ]
    found = distances(graphs, drawn, cutoff)
    copies = [copy.copy(graph) for graph in graphs]
    for data, index, distance in zip(copies, drawn, found, strict=True):
        reached = distance >= 0
        data.edge_label_index = index[:, reached]
        data.edge_label = distance[reached]
    return copies


def quantile_bins(values: Tensor, bins: int = 10) -> Tensor:
    """Classes of equal sizes, as far as ties allow: `[values]`, numbered from 0.

    Class k starts at the value of rank `k * len(values) // bins` and ends where the next one starts. Equal starts are
    merged, which leaves fewer classes.

    Example:
        >>> quantile_bins(torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0, 2.0]), bins=3)
        tensor([0, 0, 0, 0, 1, 1])
    """
    if bins < 1:
        raise ValueError(f"bins is {bins}, expected at least 1.")
    if values.numel() == 0:
        return torch.empty(0, dtype=torch.long)
    starts = values.sort().values[torch.arange(bins) * values.numel() // bins].unique()
    return torch.bucketize(values, starts, right=True) - 1


def _labeled(graphs: Sequence[Data], labels: Sequence[Tensor]) -> list[Data]:
    copies = [copy.copy(graph) for graph in graphs]
    for data, y in zip(copies, labels, strict=True):
        data.y = y.clone()  # a view of the labels of all graphs would keep them all alive
    return copies
