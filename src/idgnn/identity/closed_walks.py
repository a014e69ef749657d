r"""The diagonals of the powers of a matrix from its half powers, for counts and for return probabilities alike."""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.identity.walk_columns import Chunk, chunks, columns, on_rows
from idgnn.identity.walk_graph import WalkGraph, walk_graph
from idgnn.identity.walk_operator import SINGLE

# A lone graph up to this size is faster as a dense matrix than through the layout of the rows.
_DENSE_NODES = 128
# For each number of a state, beside the powers: the product of two in single precision, two factors and a product in
# double precision, the copy in double precision that a power is computed from, the sizes of columns and their places.
_BYTES = 4 + 3 * 8 + 8 + 2 * 8


def closed_walks(
    edge_index: Tensor, num_nodes: int, length: int, *, probabilities: bool, memory: int, progress: bool
) -> Tensor:
    r"""The diagonals of :math:`A^k`, or of :math:`(D^{-1} A)^k`, for k = 1 to `length`: `[num_nodes, length]`.

    .. math:: (A^{i+j})_{vv} = \sum_u (A^i)_{vu} (A^j)_{uv}

    so that no power above half the length, rounded up, is formed. The sum runs over chunks of columns u.
    """
    half = (length + 1) // 2
    if num_nodes <= _DENSE_NODES and 4 * length * num_nodes**2 * 8 <= memory:
        return _dense(edge_index, num_nodes, length, probabilities)
    source, target = edge_index.long()
    # A node that lacks out-edges or in-edges is on no closed walk.
    on_walk = (torch.bincount(source, minlength=num_nodes) > 0) & (torch.bincount(target, minlength=num_nodes) > 0)
    graph = walk_graph(edge_index, num_nodes, on_walk, half, probabilities)
    undirected = graph.forward is graph.backward
    total = torch.zeros(length, graph.num_rows + 1, dtype=torch.float64, device=edge_index.device)
    plan = chunks(graph, memory, _BYTES + 8 * (half if undirected else length))
    # Held for all chunks: fresh memory of this size would cost as much as the sums.
    scratch = torch.empty(max((chunk.numbers for chunk in plan), default=0), device=edge_index.device)
    for chunk, forward, backward in on_rows(graph, plan, "closed walks", progress):
        slot = graph.slot[chunk.start : chunk.stop]
        leaving = list(columns(forward, backward, slot, chunk, half))  # (A^i)[v, u], each [rows, width]
        returning = leaving  # (A^j)[u, v]
        if not undirected:
            returning = list(columns(backward, forward, slot, chunk, length // 2))
        total[1:, chunk.start : chunk.stop] += _sums(leaving, returning, _column_sizes(graph, chunk), length, scratch)
    total[0, :-1] = _diagonal(graph)
    return total.t().contiguous().index_select(0, graph.row)


def _dense(edge_index: Tensor, num_nodes: int, length: int, probabilities: bool) -> Tensor:
    source, target = edge_index.long()
    matrix = torch.bincount(source * num_nodes + target, minlength=num_nodes**2).view(num_nodes, num_nodes).double()
    if probabilities:
        matrix = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    powers = [torch.eye(num_nodes, dtype=torch.float64, device=edge_index.device), matrix]
    for _ in range((length - 1) // 2):
        powers.append(powers[-1] @ matrix)
    leaving = torch.stack([powers[(k + 1) // 2] for k in range(1, length + 1)])  # [length, num_nodes, num_nodes]
    returning = torch.stack([powers[k // 2] for k in range(1, length + 1)])
    return (leaving * returning.mT).sum(2).t().contiguous()


def _sums(leaving: list[Tensor], returning: list[Tensor], size: Tensor | None, length: int, scratch: Tensor) -> Tensor:
    """The sums over u in the chunk for walks of length 2 to `length`, u counted `size` times: `[length - 1, rows]`."""
    halves = [(leaving[(k - 1) // 2], returning[k // 2 - 1]) for k in range(2, length + 1)]
    if not halves:
        return scratch.new_empty(0, leaving[0].size(0))
    scratch = scratch[: leaving[0].numel()].view_as(leaving[0])
    sums = torch.stack([_sum(a, b, size, scratch).double() for a, b in halves])
    # No term is negative, so a sum below 2^24 had no part above it and is exact. The few others are added up again.
    high = sums >= SINGLE
    for k in high.any(1).nonzero().flatten().tolist() if bool(high.any()) else []:
        a, b = halves[k]
        if a.dtype == b.dtype == torch.float32:
            rounded = high[k].nonzero().flatten()
            rounded_size = size[rounded] if size is not None and size.size(0) > 1 else size
            sums[k, rounded] = _inner(a[rounded], b[rounded], rounded_size)
    return sums


def _sum(a: Tensor, b: Tensor, size: Tensor | None, scratch: Tensor) -> Tensor:
    """The inner products of the rows of two matrices, in single precision if both are: `[rows]`."""
    if a.dtype != torch.float32 or b.dtype != torch.float32:
        return _inner(a, b, size)
    product = torch.mul(a, b, out=scratch)
    return (product if size is None else product.mul_(size.float())).sum(1)


def _inner(a: Tensor, b: Tensor, size: Tensor | None) -> Tensor:
    """The inner products of the rows of two matrices in double precision: `[rows]`."""
    a, b = a.double(), b.double()
    return torch.bmm((a if size is None else a * size).unsqueeze(1), b.unsqueeze(2)).view(-1)


def _diagonal(graph: WalkGraph) -> Tensor:
    matrix = graph.forward
    loop = (matrix.row == matrix.column).nonzero().flatten()
    return torch.zeros_like(graph.size).index_copy_(0, matrix.row[loop], matrix.entry[loop])


def _column_sizes(graph: WalkGraph, chunk: Chunk) -> Tensor | None:
    """The number of nodes each column stands for, `[rows or 1, width]`, or None where all stand for themselves."""
    roots = graph.size[chunk.start + chunk.first : chunk.start + chunk.last]
    if not bool((roots > 1).any()):
        return None
    rows = torch.arange(chunk.start, chunk.stop if chunk.blocks > 1 else chunk.start + 1, device=roots.device)
    slots = torch.arange(chunk.first, chunk.first + chunk.width, device=roots.device)
    column = (rows - graph.slot[rows]).unsqueeze(1) + slots  # past the end of a block the states are zero
    return graph.size[column.clamp(max=graph.num_rows - 1)]
