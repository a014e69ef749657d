"""The plain twin of the counts: powers of a matrix of Python integers, and awkward graphs to try it on."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor


def plain_powers(edge_index: Tensor, num_nodes: int, length: int) -> np.ndarray:
    """A, A^2, ... with Python integers of any size: `[length, num_nodes, num_nodes]`."""
    matrix = np.full((num_nodes, num_nodes), 0, dtype=object)
    for source, target in edge_index.t().tolist():
        matrix[source, target] += 1
    powers = [matrix]
    for _ in range(length - 1):
        powers.append(powers[-1].dot(matrix))
    return np.stack(powers)


def plain_cycle_counts(edge_index: Tensor, num_nodes: int, length: int) -> Tensor:
    powers = plain_powers(edge_index, num_nodes, length)
    diagonals = [[int(power[v, v]) for power in powers] for v in range(num_nodes)]
    return torch.tensor(diagonals, dtype=torch.float64).view(num_nodes, length)


@st.composite
def awkward_graphs(draw: st.DrawFn, min_nodes: int = 0) -> tuple[Tensor, int]:
    """Graphs with all that breaks assumptions: no nodes, no edges, duplicates, self-loops, twins, hubs, one-way edges,
    isolated nodes, several components, in order or shuffled."""
    num_nodes = draw(st.integers(min_nodes, 14))
    node = st.integers(0, max(num_nodes - 1, 0))
    edges = draw(st.lists(st.tuples(node, node), max_size=24 if num_nodes else 0))
    if num_nodes and draw(st.booleans()):
        edges += [(draw(node), leaf) for leaf in range(num_nodes)]
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    if draw(st.booleans()):  # a second component, in the same or in mixed order
        edge_index, num_nodes = torch.cat([edge_index, edge_index + num_nodes], dim=1), 2 * num_nodes
        if draw(st.booleans()):
            edge_index = torch.randperm(num_nodes)[edge_index]
    if draw(st.booleans()):
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    return edge_index, num_nodes
