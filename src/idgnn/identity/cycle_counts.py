"""How many closed walks of each length start at each node: the features of ID-GNN-Fast."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.identity.checks import check_count_options, check_edge_index
from idgnn.identity.walks.columns import Chunk, chunks, columns, on_rows
from idgnn.identity.walks.hubs import closed_walks_at_hubs, plan_hubs
from idgnn.identity.walks.matrix import SINGLE, WalkGraph, walk_graph
from idgnn.identity.walks.progress import Done, shown_progress

if TYPE_CHECKING:
    from idgnn.identity.hetero.counts import MetaPath

# Part of the message where counts are too large for float64.
ADVICE = 'count shorter walks; as features of a network the scale "log" and, for any length, "walk" stay small'
# A single graph up to this size is faster as a dense matrix than in blocks of rows.
_DENSE_NODES = 128
# For each number of a state: the powers before and after a step, a copy in float64, what the sums multiply (two
# factors, a product in each precision), the sizes of columns and their rows.
_BYTES = 2 * 8 + 8 + 2 * 8 + 8 + 4 + 2 * 8
_DIRECTED_BYTES = _BYTES + 3 * 8  # the powers of the transpose, too


@overload
def cycle_counts(
    edge_index: Tensor, num_nodes: int, length: int, *, memory: int = 2**30, progress: bool = False
) -> Tensor: ...
@overload
def cycle_counts(
    edge_index: HeteroData,
    num_nodes: str,
    length: int,
    *,
    meta_path: MetaPath | None = None,
    memory: int = 2**30,
    progress: bool = False,
) -> Tensor: ...
def cycle_counts(
    edge_index: Tensor | HeteroData,
    num_nodes: Any,
    length: int,
    *,
    meta_path: MetaPath | None = None,
    memory: int = 2**30,
    progress: bool = False,
) -> Tensor:
    r"""Counts the closed walks of length 1 to `length` at every node, the features of ID-GNN-Fast.

    .. math:: x^+_v[k] = (A^k)_{vv}, \qquad A_{st} = \text{the number of edges from } s \text{ to } t

    Directed edges, duplicates and self-loops are counted as they are. The graphs of a batch are counted in one call at
    no extra cost: pass the `edge_index` of the whole batch.

    Args:
        edge_index: `[2, num_edges]`, on any device; or a `HeteroData`.
        num_nodes: the number of nodes, isolated ones included; of a `HeteroData`, the node type that is counted at.
        length: the longest walk.
        meta_path: of a `HeteroData`, a chain of edge types from that node type back to it: then column k counts the
            closed walks that follow it k times. `None` counts walks over all edge types.
        memory: bytes that the working state may take beside the graph and the result; a single column of the largest
            component is always allowed.
        progress: show a progress bar.

    Returns:
        `[num_nodes, length]` in float64. Counts below 2^53 are exact; a warning says when a count reaches that.

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
    if isinstance(edge_index, HeteroData):
        from idgnn.identity.hetero.counts import hetero_cycle_counts  # which is built on this

        return hetero_cycle_counts(edge_index, num_nodes, length, meta_path, memory, progress)
    if meta_path is not None:
        raise ValueError("meta_path is for a HeteroData, whose edges have types. Leave it out.")
    check_edge_index(edge_index, num_nodes)
    check_count_options(num_nodes, length, memory)
    counts = closed_walks(edge_index, num_nodes, length, probabilities=False, memory=memory, progress=progress)
    check_exact(counts, "closed-walk counts", ADVICE)
    return counts


def check_exact(counts: Tensor, name: str, advice: str) -> None:
    """Warns where counts, `[rows, length]`, may be rounded, and refuses those that float64 cannot hold.

    Sums of whole numbers that never pass 2^53 are exact in float64, and no term is negative, so a sum that has passed
    it stays above.
    """
    if _below(counts, 2**53):
        return
    check_finite(counts, advice)
    rounded = counts >= 2**53
    exact = int((~rounded.any(0)).long().cumprod(0).sum())
    warnings.warn(
        f"{int(rounded.sum())} of {counts.numel()} {name} reach 2^53 and are rounded to the precision of float64; they "
        f"are exact up to length {exact}. Ask for length={exact} if every digit matters; {advice}.",
        stacklevel=3,
    )


def check_finite(counts: Tensor, advice: str) -> None:
    """Refuses counts, `[rows, length]`, that are too large for float64."""
    if not _below(counts, float("inf")):
        reached = int(torch.isfinite(counts).all(0).long().cumprod(0).sum())
        raise ValueError(
            f"counts of length {counts.size(1)} pass 1.8e308, the largest number of float64, at length {reached + 1}: "
            f"expected a length of at most {reached}. Ask for shorter walks; {advice}."
        )


def _below(counts: Tensor, bound: float) -> bool:
    """Whether all counts are below the bound; NaN is not."""
    return counts.numel() == 0 or bool(counts.max() < bound)


def closed_walks(
    edge_index: Tensor, num_nodes: int, length: int, *, probabilities: bool, memory: int, progress: bool
) -> Tensor:
    r"""The diagonals of :math:`A^k`, or of :math:`(D^{-1} A)^k`, for k = 1 to `length`: `[num_nodes, length]`.

    .. math:: (A^{i+j})_{vv} = \sum_u (A^i)_{vu} (A^j)_{uv}

    so that no power above half the length, rounded up, is needed. The sum is over chunks of columns u. In a graph with
    hubs, the walks that visit a hub are counted first: see :mod:`idgnn.identity.walks.hubs`.
    """
    if num_nodes <= _DENSE_NODES and 4 * length * num_nodes**2 * 8 <= memory:
        return _dense_closed_walks(edge_index, num_nodes, length, probabilities)
    edge_index = edge_index.long()
    hubs = plan_hubs(edge_index, num_nodes, 0 if probabilities else length, memory)
    with shown_progress("closed walks", float(hubs.hub_cost.sum()) + hubs.rest_cost, progress) as done:
        if hubs.num_hubs == 0:
            return _walks_by_columns(edge_index, num_nodes, length, probabilities, memory, hubs.rest_cost, done)
        counts, rest = closed_walks_at_hubs(edge_index, hubs, length, memory, done)
        return counts + _walks_by_columns(rest, num_nodes, length, probabilities, memory, hubs.rest_cost, done)


def _walks_by_columns(
    edge_index: Tensor, num_nodes: int, length: int, probabilities: bool, memory: int, cost: float, done: Done
) -> Tensor:
    """The sums over columns u. Calls `done` with the share of `cost` of each chunk."""
    source, target = edge_index
    # A node that lacks out-edges or in-edges is on no closed walk.
    on_walk = (torch.bincount(source, minlength=num_nodes) > 0) & (torch.bincount(target, minlength=num_nodes) > 0)
    graph = walk_graph(edge_index, num_nodes, on_walk, probabilities)
    undirected = graph.forward is graph.backward
    total = torch.zeros(graph.num_rows + 1, length, dtype=torch.float64, device=edge_index.device)
    plan = chunks(graph, memory, _BYTES if undirected else _DIRECTED_BYTES)
    share = cost / max(sum(chunk.numbers for chunk in plan), 1)
    # Allocated once for all chunks: new memory of this size would cost as much as the sums.
    scratch = torch.empty(max((chunk.numbers for chunk in plan), default=0), device=edge_index.device)
    merged = bool((graph.size > 1).any())
    for chunk, forward, backward in on_rows(graph, plan, lambda numbers: done(numbers * share)):
        product = scratch[: chunk.numbers].view(-1, chunk.width)
        size = _column_sizes(graph, chunk) if merged else None
        powers = columns(graph, chunk, forward, backward, (length + 1) // 2)
        transposed_powers = powers if undirected else columns(graph, chunk, backward, forward, length // 2)
        sums: list[Tensor] = []  # of lengths 2, 3, ..., each [rows]
        returning: Tensor | None = None  # (A^j)[u, v]
        for power, leaving in enumerate(powers, start=1):  # (A^i)[v, u], both [rows, width]
            if returning is not None:
                sums.append(_row_products(leaving, returning, size, product))
            if 2 * power <= length:
                returning = leaving if undirected else next(transposed_powers)
                sums.append(_row_products(leaving, returning, size, product))
        if sums:
            total[chunk.start : chunk.stop, 1:] += torch.stack(sums, dim=1)
    loop = (graph.forward.row == graph.forward.column).nonzero().flatten()
    total[graph.forward.row[loop], 0] = graph.forward.entry[loop]
    return total.index_select(0, graph.row)


def _dense_closed_walks(edge_index: Tensor, num_nodes: int, length: int, probabilities: bool) -> Tensor:
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


def _row_products(a: Tensor, b: Tensor, size: Tensor | None, product: Tensor) -> Tensor:
    """The inner products of the rows of two matrices whose columns count `size` times: `[rows]` in float64.

    `product` is memory for as many numbers as the matrices have, in float32.
    """
    if a.dtype != torch.float32 or b.dtype != torch.float32:
        a, b = a.double(), b.double()
        return torch.linalg.vecdot(a if size is None else a * size, b)
    torch.mul(a, b, out=product)
    total = (product if size is None else product.mul_(size.float())).sum(1).double()
    # No term is negative, so a sum below 2^24 is exact. The few others are computed again.
    rounded = (total >= SINGLE).nonzero().flatten()
    if rounded.numel():
        size = size[rounded] if size is not None and size.size(0) > 1 else size
        total[rounded] = _row_products(a[rounded].double(), b[rounded].double(), size, product)
    return total


def _column_sizes(graph: WalkGraph, chunk: Chunk) -> Tensor | None:
    """The number of nodes that each column represents, `[rows or 1, width]`, or None where all represent one."""
    roots = graph.size[chunk.start + chunk.first : chunk.start + chunk.last]
    if not bool((roots > 1).any()):
        return None
    rows = torch.arange(chunk.start, chunk.stop if chunk.blocks > 1 else chunk.start + 1, device=roots.device)
    slots = torch.arange(chunk.first, chunk.first + chunk.width, device=roots.device)
    column = (rows - graph.slot[rows]).unsqueeze(1) + slots  # past the end of a block the states are zero
    return graph.size[column.clamp(max=graph.num_rows - 1)]
