"""The adjacency matrix sorted for counting walks: blocks of rows that no walk leaves, one row for all twins."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from idgnn.identity.adjacency import pointers, spread
from idgnn.identity.walks.components import connected_components, contiguous_blocks, twins

# Whole numbers up to it, and sums of whole numbers that do not pass it, are exact in float32.
SINGLE = 2**24
# Twins and components are searched for in graphs with larger blocks: the search costs as much as a few columns.
_LARGE_BLOCK = 1000


@dataclass(frozen=True)
class WalkMatrix:
    """A sparse matrix M between rows that represent one or more nodes each, sorted by rows."""

    ptr: Tensor  # [rows + 1]
    row: Tensor  # [entries] as in the whole matrix
    column: Tensor  # [entries]
    entry: Tensor  # [entries] float64: M between one node of the row and one node of the column
    weight: Tensor  # [entries] float64: entry times the number of nodes of the column, the coefficient in a product

    def within(self, start: int, stop: int) -> WalkMatrix:
        """The same matrix on the rows `start` to `stop`, which have no entries elsewhere, with columns from 0."""
        low, high = int(self.ptr[start]), int(self.ptr[stop])
        return WalkMatrix(
            ptr=self.ptr[start : stop + 1] - low,
            row=self.row[low:high],
            column=self.column[low:high] - start,
            entry=self.entry[low:high],
            weight=self.weight[low:high],
        )

    @property
    def num_rows(self) -> int:
        return self.ptr.numel() - 1

    def without_first(self, count: int) -> WalkMatrix:
        """The same matrix without its first rows and columns, the others numbered from 0."""
        low = int(self.ptr[count])
        kept = (self.column[low:] >= count).nonzero().flatten() + low
        row = self.row[kept] - count
        entry, weight = self.entry[kept], self.weight[kept]
        return WalkMatrix(pointers(row, self.num_rows - count), row, self.column[kept] - count, entry, weight)

    def select(self, rows: Tensor, place: Tensor | None = None) -> WalkMatrix:
        """The given rows of the matrix and an empty row after them; column c is called `place[c]`, if that is given."""
        start = self.ptr[rows]
        owner, position = spread(start, self.ptr[rows + 1] - start)
        entry, weight = self.entry[position], self.weight[position]
        column = self.column[position] if place is None else place[self.column[position]]
        return WalkMatrix(pointers(owner, rows.numel() + 1), owner, column, entry, weight)

    def __matmul__(self, state: Tensor) -> Tensor:
        """M times a state, `[rows, width]`, in the precision of the state: entries times width operations."""
        if state.dtype == torch.float32 or state.device.type != "cpu":
            weight = self.weight.to(state.dtype)
            return F.embedding_bag(self.column, state, self.ptr[:-1], mode="sum", per_sample_weights=weight)
        # In float64 on a CPU, this takes a third of the time of embedding_bag, and needs no MKL.
        size = (self.num_rows, state.size(0))
        with warnings.catch_warnings(action="ignore"):  # PyTorch calls its CSR tensors a beta feature, once a process
            matrix = torch.sparse_csr_tensor(self.ptr, self.column, self.weight, size, check_invariants=False)
        return torch.sparse.mm(matrix, state, "sum")


@dataclass(frozen=True)
class WalkGraph:
    """Rows in blocks, the blocks with the most roots first, and in each block its roots first.

    A row represents a class of twins. Blocks without a root have no rows.
    """

    row: Tensor  # [num_nodes] the row of each node, or num_rows for a node without one
    size: Tensor  # [rows] float64: the number of nodes that the row represents
    slot: Tensor  # [rows] the position of the row in its block
    block_ptr: Tensor  # [blocks + 1] the rows of each block
    block_roots: Tensor  # [blocks] the number of roots of each block, never increasing
    forward: WalkMatrix  # A
    backward: WalkMatrix  # the transpose of A; the same object where the two are equal
    single_powers: int  # how many powers of A, from the first on, have only numbers below 2^24

    @property
    def num_rows(self) -> int:
        return self.size.numel()


def walk_graph(edge_index: Tensor, num_nodes: int, roots: Tensor, probabilities: bool = False) -> WalkGraph:
    """Sorts a graph for the columns of the powers of A that belong to `roots`, a bool per node.

    Linear in the edges except for sorting them. For `probabilities` see :func:`walk_matrices`.
    """
    source, target = edge_index.long()
    node = torch.arange(num_nodes, device=source.device)
    block, twin = contiguous_blocks(source, target, num_nodes), node
    # In a block the roots come first, and of them those without twins: then few chunks of columns need weights.
    place = 2 * (~roots).long()
    if num_nodes > 0 and int(torch.bincount(block).max()) > _LARGE_BLOCK:
        block, twin = connected_components(source, target, num_nodes), twins(source, target, num_nodes)
        roots = torch.zeros_like(roots).index_fill(0, twin[roots], True)  # the representative of a root is a root
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
    forward, backward = walk_matrices(row.index_select(0, source), row.index_select(0, target), size, probabilities)
    single_powers = 0 if probabilities else _single_powers(forward, size)
    return WalkGraph(row, size, slot, block_ptr, block_roots[:num_blocks], forward, backward, single_powers)


def _single_powers(matrix: WalkMatrix, size: Tensor) -> int:
    """How many powers of A surely stay below 2^24: no number of A^k is above max(A) times (largest row sum)^(k-1)."""
    if matrix.entry.numel() == 0:
        return 0
    sums = torch.zeros_like(size).index_add_(0, matrix.row, matrix.weight)
    bound, growth = torch.stack([matrix.entry.max(), sums.max()]).tolist()
    powers = 0
    while bound < SINGLE and powers < 24:
        bound, powers = bound * growth, powers + 1
    return powers


def walk_matrices(row: Tensor, column: Tensor, size: Tensor, probabilities: bool) -> tuple[WalkMatrix, WalkMatrix]:
    """A and its transpose, the same object where they are equal, from the edges that leave one node of each row.

    `size` is the number of nodes of each row. With `probabilities`, A is divided by the degrees: D^-1/2 A D^-1/2 where
    A is symmetric, whose powers have the diagonals of those of D^-1 A, else D^-1 A itself, with D the out-degrees.
    """
    num_rows = size.numel()
    # On a CPU, index_select takes a quarter of the time of indexing, and sorting half the time on 32 bits.
    key = row * num_rows + column
    key, order = (key.int() if num_rows**2 < 2**31 else key).sort()
    row, column = row.index_select(0, order), column.index_select(0, order)
    count = torch.ones(key.numel(), dtype=torch.float64, device=key.device)
    repeated = bool((key[1:] == key[:-1]).any())
    if repeated:
        repeats = torch.unique_consecutive(key, return_counts=True)[1]
        last = repeats.cumsum(0) - 1
        row, column, count = row[last], column[last], repeats.double()
    merged = bool((size > 1).any())
    entry = count / size[column] if merged else count  # a whole number: the nodes of a row share their in-edges

    turn = column.int().sort(stable=True)[1]  # by column, then by row
    turned_row, turned_column = column.index_select(0, turn), row.index_select(0, turn)
    symmetric = torch.equal(turned_row, row) and torch.equal(turned_column, column)
    if symmetric and repeated:
        symmetric = torch.equal(entry[turn], entry)
    if probabilities:
        degree = torch.zeros_like(size).index_add_(0, row, count)
        entry = entry / ((degree[row] * degree[column]).sqrt() if symmetric else degree[row])

    def matrix(row: Tensor, column: Tensor, entry: Tensor) -> WalkMatrix:
        return WalkMatrix(pointers(row, num_rows), row, column, entry, entry * size[column] if merged else entry)

    forward = matrix(row, column, entry)
    return forward, forward if symmetric else matrix(turned_row, turned_column, entry[turn])
