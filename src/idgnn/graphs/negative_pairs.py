"""Pairs of nodes that are not edges, drawn uniformly, in many graphs at once."""

from __future__ import annotations

import torch
from torch import Tensor


def negative_pairs(
    edge_index: Tensor, node_ptr: Tensor, counts: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Ordered pairs `u != v` of one graph that are not edges, uniform and with replacement.

    The pairs `(u, v)` of graph g are the cells of its adjacency matrix, row by row. Those that are neither edges nor on
    the diagonal are allowed. A pair is an allowed cell of a random rank; since `f - j` allowed cells come before the
    j-th forbidden cell f, the cell of rank r is `r` plus the number of j with `f - j <= r`: a binary search, and no
    draw is ever rejected. Costs O((edges + nodes + pairs) log(edges + nodes)); on any device the same result.

    Args:
        edge_index: edges `[2, E]` of all graphs, with the node ids of all graphs together. Only the directions given
            are avoided: pass both for undirected graphs.
        node_ptr: `[graphs + 1]`, graph g has the nodes `node_ptr[g]` to `node_ptr[g + 1] - 1`.
        counts: `[graphs]`, how many pairs each graph should get.
        generator: on the CPU.

    Returns:
        The pairs `[2, P]`, graph by graph, and how many each graph got `[graphs]`: what was asked for, but 0 where no
        pair is allowed (a complete graph, a single node).

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> pairs, counts = negative_pairs(path, torch.tensor([0, 3]), torch.tensor([4]), torch.Generator())
        >>> sorted(set(map(tuple, pairs.t().tolist())))
        [(0, 2), (2, 0)]
    """
    device = edge_index.device
    node_ptr, counts = node_ptr.to(device), counts.to(device)
    sizes = node_ptr.diff()
    _check(edge_index, node_ptr, counts)
    cell_ptr = torch.cat([node_ptr.new_zeros(1), (sizes * sizes).cumsum(0)])  # [graphs + 1]

    nodes = torch.arange(int(node_ptr[-1]), device=device)
    forbidden_pairs = torch.cat([edge_index, nodes.expand(2, -1)], dim=1)
    graph = torch.searchsorted(node_ptr, forbidden_pairs[0].contiguous(), right=True) - 1
    row, column = forbidden_pairs - node_ptr[graph]
    forbidden = (cell_ptr[graph] + row * sizes[graph] + column).unique()  # sorted
    before = forbidden - torch.arange(forbidden.numel(), device=device)  # allowed cells before each

    # Allowed cells before each graph; their differences are the numbers of allowed cells of the graphs.
    first = cell_ptr - torch.searchsorted(forbidden, cell_ptr)
    allowed = first.diff()
    counts = torch.where(allowed > 0, counts, 0)
    graph = torch.repeat_interleave(counts)
    # The remainder of 63 random bits: uniform up to one part in 2^63 / allowed.
    random = torch.randint(2**63 - 1, (graph.numel(),), generator=generator).to(device)
    rank = first[graph] + random % allowed[graph]
    cell = rank + torch.searchsorted(before, rank, right=True) - cell_ptr[graph]
    return torch.stack([cell // sizes[graph], cell % sizes[graph]]) + node_ptr[graph], counts


def _check(edge_index: Tensor, node_ptr: Tensor, counts: Tensor) -> None:
    if counts.numel() != node_ptr.numel() - 1 or bool((counts < 0).any()):
        raise ValueError(
            f"counts has {counts.numel()} entries for {node_ptr.numel() - 1} graphs, expected one for each, none "
            "below 0."
        )
    if edge_index.numel():
        ends = torch.searchsorted(node_ptr, edge_index.contiguous(), right=True)
        if bool((ends[0] != ends[1]).any()) or int(ends.max()) >= node_ptr.numel() or int(ends.min()) < 1:
            raise ValueError(
                "some edges do not lie within one graph, expected the node ids of all graphs together, graph g from "
                "node_ptr[g] on. Pass edge_index and ptr of a torch_geometric.data.Batch."
            )
