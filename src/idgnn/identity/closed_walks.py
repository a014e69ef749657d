r"""The diagonals of the powers of a matrix from its half powers, for counts and for return probabilities alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import torch
from torch import Tensor

from idgnn.identity.walk_columns import Chunk, chunks, columns, on_rows
from idgnn.identity.walk_graph import WalkGraph, walk_graph

# A lone graph up to this size is faster as a dense matrix than through the layout of the rows.
_DENSE_NODES = 128
# Two states in single and two in double precision, one of them times the sizes of the columns, and a product of two.
_BYTES = 4 + 4 + 8 + 8 + 8 + 8
_DIRECTED_BYTES = _BYTES + 4 + 4 + 8

T = TypeVar("T")


def closed_walks(
    edge_index: Tensor, num_nodes: int, length: int, *, probabilities: bool, memory: int, progress: bool
) -> Tensor:
    r"""The diagonals of :math:`A^k`, or of :math:`(D^{-1} A)^k`, for k = 1 to `length`: `[num_nodes, length]`.

    .. math:: (A^{i+j})_{vv} = \sum_u (A^i)_{vu} (A^j)_{uv}

    so that no power above half the length, rounded up, is formed. The sum runs over chunks of columns u.
    """
    half = (length + 1) // 2
    if num_nodes <= _DENSE_NODES and 3 * half * num_nodes**2 * 8 <= memory:
        return _dense(edge_index, num_nodes, length, probabilities)
    source, target = edge_index.long()
    # A node that lacks out-edges or in-edges is on no closed walk.
    on_walk = (torch.bincount(source, minlength=num_nodes) > 0) & (torch.bincount(target, minlength=num_nodes) > 0)
    graph = walk_graph(edge_index, num_nodes, on_walk, length, probabilities)
    undirected = graph.forward is graph.backward
    total = torch.zeros(graph.num_rows + 1, length, dtype=torch.float64, device=edge_index.device)
    plan = chunks(graph, memory, _BYTES if undirected else _DIRECTED_BYTES)
    for chunk, forward, backward in on_rows(graph, tracked(plan, "closed walks", progress)):
        rows = total[chunk.start : chunk.stop]
        slot = graph.slot[chunk.start : chunk.stop]
        size = _column_sizes(graph, chunk)
        single = 0 if probabilities else int(forward.single.min())
        out = columns(forward, backward, slot, chunk, half)
        back = out if undirected else columns(backward, forward, slot, chunk, length // 2)
        returning: Tensor | None = None
        for power, leaving in enumerate(out, start=1):  # [rows, width]
            # A sum that stays below 2^24 may stay in single precision, the others may not.
            state = leaving if 2 * power <= single else leaving.double()
            leaving = state if size is None else state * size
            if returning is not None:
                rows[:, 2 * power - 2] += (leaving * returning).sum(1)
            if 2 * power <= length:
                returning = state if undirected else next(back)
                rows[:, 2 * power - 1] += (leaving * returning).sum(1)
    total[:-1, 0] = _diagonal(graph)
    return total[graph.row]


def tracked(work: list[T], description: str, progress: bool) -> Iterable[T]:
    """The items of `work`, with a progress bar where one is asked for."""
    if not progress:
        return work
    from rich.progress import track

    return track(work, description)


def _dense(edge_index: Tensor, num_nodes: int, length: int, probabilities: bool) -> Tensor:
    source, target = edge_index.long()
    matrix = torch.bincount(source * num_nodes + target, minlength=num_nodes**2).view(num_nodes, num_nodes).double()
    if probabilities:
        matrix = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    powers = [matrix]
    for _ in range((length - 1) // 2):
        powers.append(powers[-1] @ matrix)
    power = torch.stack(powers)  # [half, num_nodes, num_nodes]
    total = torch.empty(num_nodes, 2 * len(powers), dtype=torch.float64, device=edge_index.device)
    total[:, 0] = matrix.diagonal()
    total[:, 1::2] = (power * power.mT).sum(2).T
    total[:, 2::2] = (power[1:] * power[:-1].mT).sum(2).T
    return total[:, :length].contiguous()


def _diagonal(graph: WalkGraph) -> Tensor:
    matrix = graph.forward
    loop = matrix.row == matrix.column
    return torch.zeros_like(graph.size).index_copy(0, matrix.row[loop], matrix.entry[loop])


def _column_sizes(graph: WalkGraph, chunk: Chunk) -> Tensor | None:
    """The number of nodes each column stands for, `[rows or 1, width]`, or None where all stand for themselves."""
    roots = graph.size[chunk.start + chunk.first : chunk.start + chunk.last]
    if not bool((roots > 1).any()):
        return None
    rows = torch.arange(chunk.start, chunk.stop if chunk.blocks > 1 else chunk.start + 1, device=roots.device)
    slots = torch.arange(chunk.first, chunk.first + chunk.width, device=roots.device)
    column = (rows - graph.slot[rows]).unsqueeze(1) + slots  # past the end of a block the states are zero
    return graph.size[column.clamp(max=graph.num_rows - 1)]
