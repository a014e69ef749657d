r"""A graph laid out for counting walks: blocks of rows that no walk leaves, twins merged, both directions sorted."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import pointers
from idgnn.identity.walks.blocks import connected_components, contiguous_blocks
from idgnn.identity.walks.operator import WalkOperator, walk_operators
from idgnn.identity.walks.twins import twins

# Blocks beyond this size pay for the search for twins and hidden components: it costs as much as a few columns.
_LARGE_BLOCK = 1000


@dataclass(frozen=True)
class WalkGraph:
    """Rows in blocks, the blocks with the most roots first, and in each block its roots first.

    A row stands for a class of twins. Blocks without a root have no rows.
    """

    row: Tensor  # [num_nodes] the row of each node, or num_rows for a node without one
    size: Tensor  # [rows] float64: the nodes that the row stands for
    slot: Tensor  # [rows] the position of the row in its block
    block_ptr: Tensor  # [blocks + 1] the rows of each block
    block_roots: Tensor  # [blocks] the roots of each block, never increasing
    forward: WalkOperator  # A
    backward: WalkOperator  # the transpose of A; the same object where the two are equal

    @property
    def num_rows(self) -> int:
        return self.size.numel()


def walk_graph(
    edge_index: Tensor, num_nodes: int, roots: Tensor, powers: int, probabilities: bool = False
) -> WalkGraph:
    """Lays a graph out for the columns of the first `powers` powers of A that belong to `roots`, a bool per node.

    Linear in the edges but for sorting them. For `probabilities` see :func:`walk_operators`.
    """
    source, target = edge_index.long()
    node = torch.arange(num_nodes, device=source.device)
    block, twin = contiguous_blocks(source, target, num_nodes), node
    # In a block the roots come first, and of them those without twins: so few chunks of columns have twins to weigh.
    place = 2 * (~roots).long()
    if num_nodes > 0 and int(torch.bincount(block).max()) > _LARGE_BLOCK:
        block, twin = connected_components(source, target, num_nodes), twins(source, target, num_nodes)
        roots = torch.zeros_like(roots).index_fill(0, twin[roots], True)  # a root makes its first twin one
        place = 2 * (~roots).long() + (torch.bincount(twin, minlength=num_nodes) > 1)

    block_roots = torch.zeros_like(torch.bincount(block)).index_add_(0, block, roots.long())
    block_roots, by_roots = block_roots.sort(descending=True, stable=True)
    num_blocks = int((block_roots > 0).sum())
    rank = torch.empty_like(by_roots).index_copy_(0, by_roots, node[: by_roots.numel()]).index_select(0, block)
    has_row = (twin == node) & (rank < num_blocks)
    key, order = torch.where(has_row, 4 * rank + place, 4 * num_nodes).sort(stable=True)
    num_rows = int(has_row.sum())
    kept, rank = order[:num_rows], key[:num_rows] // 4
    row = torch.full_like(node, num_rows).index_copy_(0, kept, node[:num_rows])
    block_ptr = pointers(rank, num_blocks)
    slot = node[:num_rows] - block_ptr.index_select(0, rank)

    size = torch.ones(num_rows, dtype=torch.float64, device=source.device)
    if num_rows < num_nodes:
        inside = row[source] < num_rows
        source, target = source[inside], target[inside]
        row = row[twin]
        size = torch.bincount(row, minlength=num_rows + 1)[:-1].double()
    forward, backward = walk_operators(
        row.index_select(0, source), row.index_select(0, target), size, powers, probabilities
    )
    return WalkGraph(row, size, slot, block_ptr, block_roots[:num_blocks], forward, backward)
