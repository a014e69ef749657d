"""Anchor sets, and for every node the closest member of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from idgnn.graphs.structure import distances
from idgnn.tasks.query_set import QuerySet
from idgnn.training.seeds import generator_of

SETS = 0.5
"""The c of the paper's c log^2 n sets."""


@dataclass(frozen=True)
class Anchors:
    """For the graphs of a part: which node is the closest of a set to which, and how close it is."""

    edge_index: Tensor  # [2, edges] of the part, by which it is known again
    closest: Tensor  # [closest, node], one column for each node and set: [2, nodes and sets]
    weight: Tensor  # [nodes and sets] 1 / (distance + 1), or 0 if no member is reached
    number: Tensor  # [nodes and sets] the number of the set, within its graph

    @property
    def num_sets(self) -> int:
        """Of the graph that has most of them."""
        return int(self.number.max()) + 1


def anchor_sets(num_nodes: int, generator: Generator) -> list[Tensor]:
    r"""c log n sets of each of the sizes n/2, n/4, n/8, ..., 1, drawn at random (Bourgain's theorem).

    Example:
        >>> [len(members) for members in anchor_sets(16, torch.Generator().manual_seed(0))]
        [8, 8, 4, 4, 2, 2, 1, 1]
    """
    sizes = max(int(math.log2(num_nodes)), 1)
    times = max(int(SETS * sizes), 1)
    return [
        torch.randperm(num_nodes, generator=generator)[: max(num_nodes >> i, 1)]
        for i in range(1, sizes + 1)
        for _ in range(times)
    ]


def find_anchors(part: QuerySet, name: str, seed: int) -> Anchors:
    """Draws the sets of every graph, and measures exact distances in the graph that carries messages."""
    sizes = torch.bincount(part.owner, minlength=part.num_graphs).tolist()
    edges = torch.bincount(part.owner[part.edge_index[1]], minlength=part.num_graphs).tolist()
    starts = torch.tensor([0, *sizes]).cumsum(0).tolist()
    graphs = [
        Data(edge_index=edge_index - start, num_nodes=size)
        for edge_index, start, size in zip(part.edge_index.split(edges, dim=1), starts, sizes, strict=False)
    ]
    every = [torch.cartesian_prod(torch.arange(size), torch.arange(size)).t() for size in sizes]
    closest, weight, number = [], [], []
    for i, found in enumerate(distances(graphs, every, max(sizes))):
        found = found.view(sizes[i], sizes[i])  # [node, anchor]
        near = torch.where(found < 0, 0.0, 1.0 / (found + 1))
        sets = anchor_sets(sizes[i], generator_of(seed, f"anchors of {name}", i))
        nodes = torch.arange(sizes[i])
        for which, members in enumerate(sets):
            best = near[:, members].max(dim=1)
            closest.append(torch.stack([members[best.indices], nodes]) + starts[i])
            weight.append(best.values)
            number.append(torch.full_like(nodes, which))
    return Anchors(part.edge_index, torch.cat(closest, dim=1), torch.cat(weight), torch.cat(number))
