"""How many walks of each length connect the two nodes of a pair: ID-GNN-Fast for edge tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.identity.checks import check_count_options, check_edge_index, check_pairs
from idgnn.identity.cycle_counts import check_exact
from idgnn.identity.walks.columns import chunks, columns, on_rows
from idgnn.identity.walks.matrix import walk_graph
from idgnn.identity.walks.progress import shown_progress

if TYPE_CHECKING:
    from idgnn.identity.hetero.counts import MetaPath
    from idgnn.identity.hetero.queries import TypedQuerySpec

_BYTES = 8 + 8 + 8  # for each number of a state: before and after a step, and a copy in float64


@overload
def walk_counts(
    edge_index: Tensor, num_nodes: int, pairs: Tensor, length: int, *, memory: int = 2**30, progress: bool = False
) -> Tensor: ...
@overload
def walk_counts(
    edge_index: HeteroData,
    num_nodes: None,
    pairs: TypedQuerySpec,
    length: int,
    *,
    meta_path: MetaPath | None = None,
    memory: int = 2**30,
    progress: bool = False,
) -> Tensor: ...
def walk_counts(
    edge_index: Tensor | HeteroData,
    num_nodes: int | None,
    pairs: Any,
    length: int,
    *,
    meta_path: MetaPath | None = None,
    memory: int = 2**30,
    progress: bool = False,
) -> Tensor:
    r"""Counts the walks of length 1 to `length` from the first to the second node of every pair.

    .. math:: x^+_{uv}[k] = (A^k)_{uv}, \qquad A_{st} = \text{the number of edges from } s \text{ to } t

    By Lemma 1 of the paper (its appendix), these counts are what the embedding :math:`h_{u|v}` of u, with v colored,
    can see of pure structure. Messages flow along the edges, so in a directed graph it sees the walks from v to u:
    swap the pair, `walk_counts(edge_index, num_nodes, pairs.flip(0), length)`.

    The columns of A, A^2, ... that belong to one end of a pair hold the counts of all pairs with that end: the cost is
    `length` sparse products for each distinct node, at the end that has fewer of them. Half powers from both ends would
    need as many products, and a sum over all nodes for each pair besides.

    Args:
        edge_index: `[2, num_edges]`, on any device; or a `HeteroData`.
        num_nodes: the number of nodes, isolated ones included; of a `HeteroData`, `None`.
        pairs: `[2, num_pairs]`, u in the first row and v in the second; u = v is allowed. Of a `HeteroData`,
            `(("circuit", u), ("driver", v))`.
        length: the longest walk.
        meta_path: of a `HeteroData`, a chain of edge types from the type of u to that of v: then column k counts the
            walks that follow it k times. `None` counts walks over all edge types.
        memory: bytes that the working state may take beside the graph and the result; a single column of the largest
            component is always allowed.
        progress: show a progress bar.

    Returns:
        `[num_pairs, length]` in float64. Counts below 2^53 are exact; a warning says when a count reaches that.

    Example:
        One walk of two steps connects the ends of a path, and two walks of four steps do:

        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> walk_counts(path, num_nodes=3, pairs=torch.tensor([[0], [2]]), length=4)
        tensor([[0., 1., 0., 2.]], dtype=torch.float64)
    """
    if isinstance(edge_index, HeteroData):
        from idgnn.identity.hetero.counts import hetero_walk_counts  # which is built on this

        return hetero_walk_counts(edge_index, pairs, length, meta_path, memory, progress)
    if meta_path is not None or num_nodes is None:
        raise ValueError("meta_path and num_nodes=None are for a HeteroData, whose nodes and edges have types.")
    check_edge_index(edge_index, num_nodes)
    check_pairs(pairs, num_nodes)
    check_count_options(num_nodes, length, memory)
    reader, root = pairs.to(edge_index.device).long()
    transposed = torch.unique(reader).numel() < torch.unique(root).numel()
    if transposed:  # (A^k)[u, v] is in column u of the transpose
        reader, root = root, reader

    roots = torch.zeros(num_nodes, dtype=torch.bool, device=edge_index.device).index_fill(0, root, True)
    graph = walk_graph(edge_index, num_nodes, roots)
    reader, root = graph.row[reader], graph.row[root]
    block = torch.cat([torch.arange(graph.num_rows, device=root.device) - graph.slot, root.new_full((1,), -1)])
    pair = (block[reader] == block[root]).nonzero().flatten()  # no walk connects the others
    pair = pair[root[pair].argsort()]
    root_of_pair = root[pair]
    counts = torch.zeros(root.numel(), length, dtype=torch.float64, device=root.device)
    plan = chunks(graph, memory, _BYTES)
    with shown_progress("walks", sum(chunk.numbers for chunk in plan), progress) as done:
        for chunk, forward, backward in on_rows(graph, plan, done):
            ends = root.new_tensor([chunk.start + chunk.first, chunk.start + chunk.last])
            low, high = torch.searchsorted(root_of_pair, ends).tolist()
            if low == high:
                continue
            queried = pair[low:high]
            place = (reader[queried] - chunk.start) * chunk.width + graph.slot[root[queried]] - chunk.first
            matrix, other = (backward, forward) if transposed else (forward, backward)
            for power, state in enumerate(columns(graph, chunk, matrix, other, length)):  # [rows, width]
                counts[queried, power] = state.view(-1)[place].double()
    check_exact(counts, "walk counts", "as features of a network, take counts.log1p()")
    return counts
