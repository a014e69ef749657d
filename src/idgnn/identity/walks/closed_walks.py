r"""The diagonals of the powers of a matrix from its half powers, for counts and for return probabilities alike."""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.identity.walks.columns import Chunk, chunks, columns, on_rows
from idgnn.identity.walks.graph import WalkGraph, walk_graph
from idgnn.identity.walks.operator import SINGLE

# A lone graph up to this size is faster as a dense matrix than through the layout of the rows.
_DENSE_NODES = 128
# For each number of a state: the powers before and after a step, the copy in double precision that a step may start
# from, what the sums multiply (two factors, a product in each precision), the sizes of columns and their places.
_BYTES = 2 * 8 + 8 + 2 * 8 + 8 + 4 + 2 * 8
_DIRECTED_BYTES = _BYTES + 3 * 8  # a second state on the way back


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
    total = torch.zeros(graph.num_rows + 1, length, dtype=torch.float64, device=edge_index.device)
    plan = chunks(graph, memory, _BYTES if undirected else _DIRECTED_BYTES)
    # Held for all chunks: fresh memory of this size would cost as much as the sums.
    scratch = torch.empty(max((chunk.numbers for chunk in plan), default=0), device=edge_index.device)
    merged = bool((graph.size > 1).any())
    for chunk, forward, backward in on_rows(graph, plan, "closed walks", progress):
        size = _column_sizes(graph, chunk) if merged else None
        product = scratch[: chunk.numbers].view(-1, chunk.width)
        out = columns(forward, backward, graph.slot, chunk, half)
        back = out if undirected else columns(backward, forward, graph.slot, chunk, length // 2)
        sums: list[Tensor] = []  # of lengths 2, 3, ..., each [rows]
        returning: Tensor | None = None  # (A^j)[u, v]
        for power, leaving in enumerate(out, start=1):  # (A^i)[v, u], both [rows, width]
            exact = 2 * power <= forward.all_single
            if returning is not None:
                sums.append(_inner(leaving, returning, size, product, exact))
            if 2 * power <= length:
                returning = leaving if undirected else next(back)
                sums.append(_inner(leaving, returning, size, product, exact))
        if sums:
            total[chunk.start : chunk.stop, 1:] += torch.cat(sums).view(length - 1, -1).t()
    loop = (graph.forward.row == graph.forward.column).nonzero().flatten()
    total[graph.forward.row[loop], 0] = graph.forward.entry[loop]
    return total.index_select(0, graph.row)


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


def _inner(a: Tensor, b: Tensor, size: Tensor | None, product: Tensor, exact: bool) -> Tensor:
    """The inner products of the rows of two matrices whose columns count `size` times: `[rows]`.

    `product` is memory of the size of the matrices in single precision; `exact` says that this is enough for all sums.
    """
    if a.dtype != torch.float32 or b.dtype != torch.float32:
        a, b = a.double(), b.double()
        return torch.bmm((a if size is None else a * size).unsqueeze(1), b.unsqueeze(2)).view(-1)
    torch.mul(a, b, out=product)
    total = (product if size is None else product.mul_(size.float())).sum(1)
    # No term is negative, so a sum below 2^24 had no part above it and is exact. The few others are added up again.
    if exact or bool(total.max() < SINGLE):
        return total
    rounded = (total >= SINGLE).nonzero().flatten()
    size = size[rounded] if size is not None and size.size(0) > 1 else size
    again = _inner(a[rounded].double(), b[rounded].double(), size, product, exact)
    return total.double().index_copy_(0, rounded, again)


def _column_sizes(graph: WalkGraph, chunk: Chunk) -> Tensor | None:
    """The number of nodes each column stands for, `[rows or 1, width]`, or None where all stand for themselves."""
    roots = graph.size[chunk.start + chunk.first : chunk.start + chunk.last]
    if not bool((roots > 1).any()):
        return None
    rows = torch.arange(chunk.start, chunk.stop if chunk.blocks > 1 else chunk.start + 1, device=roots.device)
    slots = torch.arange(chunk.first, chunk.first + chunk.width, device=roots.device)
    column = (rows - graph.slot[rows]).unsqueeze(1) + slots  # past the end of a block the states are zero
    return graph.size[column.clamp(max=graph.num_rows - 1)]
