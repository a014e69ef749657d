"""Pairs for link prediction: edges that are held out, and pairs that are not edges, drawn uniformly."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data


def link_split(data: Data, fraction: float = 0.2, seed: int | torch.Generator = 0, directed: bool = False) -> Data:
    """A copy of the graph in which a fraction of the edges is held out as positives.

    `edge_index` keeps the edges that carry messages, with their `edge_attr` and `edge_weight`; `edge_label_index`
    holds the others, the positives, each once in both directions; and `known_edge_index` all edges of the graph, each
    once in both directions, which negatives have to avoid.

    Pairs of nodes are drawn, and all edges between the two nodes are held out, both directions and repetitions, so that
    no positive carries a message in either direction. Self-loops are never held out. The number of pairs is rounded to
    the nearest, so a graph with one or two edges keeps them at the default fraction.

    Args:
        data: the graph.
        fraction: of the pairs that are joined.
        seed: of the draw, or a generator on the CPU, to draw for one graph after another.
        directed: whether positives and known edges have only the directions that the graph has.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction is {fraction}, expected a number between 0 and 1.")
    if data.edge_index is None or data.num_nodes is None:
        raise ValueError("the graph has no edge_index, expected an integer tensor of shape [2, num_edges].")
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    edge_index, num_nodes = data.edge_index, data.num_nodes
    joins = edge_index[0] != edge_index[1]
    key = _key(edge_index.amin(dim=0), edge_index.amax(dim=0), num_nodes)  # the same for both directions
    pairs = key[joins].unique()
    drawn = torch.randperm(pairs.numel(), generator=generator)[: int(pairs.numel() * fraction + 0.5)]
    held_out = torch.isin(key, pairs[drawn.to(pairs.device)]) & joins

    result = copy.copy(data)
    for name, value in data.to_dict().items():
        if name.startswith("edge_") and name != "edge_index" and _is_per_edge(data, name, value):
            result[name] = value[~held_out]
    result.edge_index = edge_index[:, ~held_out]
    result.edge_label_index = _each_once(edge_index[:, held_out], num_nodes, directed)
    result.known_edge_index = _each_once(edge_index, num_nodes, directed)
    return result


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
    _check_graphs(edge_index, node_ptr, counts)
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


def _is_per_edge(data: Data, name: str, value: object) -> bool:
    labels = ("edge_label", "edge_label_index")  # per pair of another task, not per edge
    return isinstance(value, Tensor) and name not in labels and value.dim() > 0 and value.size(0) == data.num_edges


def _each_once(edge_index: Tensor, num_nodes: int, directed: bool) -> Tensor:
    """The different edges, sorted by source; unless directed, both directions of each."""
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    key = _key(edge_index[0], edge_index[1], num_nodes).unique()
    return torch.stack([key // max(num_nodes, 1), key % max(num_nodes, 1)])


def _key(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    return source * num_nodes + target


def _check_graphs(edge_index: Tensor, node_ptr: Tensor, counts: Tensor) -> None:
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
