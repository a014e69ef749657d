r"""The adjacency matrix and its transpose as sparse matrices that walks are counted with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from idgnn.identity.adjacency import pointers

# Whole numbers below it, and their sums up to it, are exact in single precision.
SINGLE = 2**24


@dataclass(frozen=True)
class WalkOperator:
    """A sparse matrix M between rows that stand for one or more nodes each, sorted by rows."""

    ptr: Tensor  # [rows + 1]
    row: Tensor  # [entries] as in the whole matrix
    column: Tensor  # [entries]
    entry: Tensor  # [entries] float64: M between one node of the row and one node of the column
    weight: Tensor  # [entries] float64: entry times the nodes of the column, the coefficient in a product
    single_weight: Tensor  # [entries] the same in float32
    single: Tensor  # [rows] how many powers of M, from the first, are exact in single precision in this column
    all_single: int  # how many are so in every column, by a rougher bound that may look beyond the powers asked for

    def within(self, start: int, stop: int) -> WalkOperator:
        """The same matrix on the rows `start` to `stop`, which have no entries elsewhere, with columns from 0."""
        low, high = int(self.ptr[start]), int(self.ptr[stop])
        return WalkOperator(
            ptr=self.ptr[start : stop + 1] - low,
            row=self.row[low:high],
            column=self.column[low:high] - start,
            entry=self.entry[low:high],
            weight=self.weight[low:high],
            single_weight=self.single_weight[low:high],
            single=self.single[start:stop],
            all_single=self.all_single,
        )

    def __matmul__(self, state: Tensor) -> Tensor:
        """M times a state, `[rows, width]`, in the precision of the state: entries times width operations."""
        # On a CPU a sum over bags of rows is many times faster than a sparse product in single precision, as fast in
        # double precision, and needs no MKL.
        weight = self.weight if state.dtype == torch.float64 else self.single_weight
        return F.embedding_bag(self.column, state, self.ptr[:-1], mode="sum", per_sample_weights=weight)


def walk_operators(
    row: Tensor, column: Tensor, size: Tensor, powers: int, probabilities: bool
) -> tuple[WalkOperator, WalkOperator]:
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
        powers = 0  # none is exact in single precision
    sizes = size if merged else None
    forward = _operator(row, column, entry, sizes, num_rows, powers)
    if symmetric:
        return forward, forward
    return forward, _operator(turned_row, turned_column, entry[turn], sizes, num_rows, powers)


def _operator(
    row: Tensor, column: Tensor, entry: Tensor, size: Tensor | None, num_rows: int, powers: int
) -> WalkOperator:
    weight = entry if size is None else entry * size[column]
    from_rows = entry if size is None else entry * size[row]
    single, all_single = _single_powers(row, column, from_rows, entry, num_rows, powers)
    return WalkOperator(pointers(row, num_rows), row, column, entry, weight, weight.float(), single, all_single)


def _single_powers(
    row: Tensor, column: Tensor, weight: Tensor, entry: Tensor, num_rows: int, powers: int
) -> tuple[Tensor, int]:
    """How many powers of M, from the first on, surely stay below 2^24 in each column, and in all columns.

    No number in a column of M^k is above the largest entry of M times the sum of that column of M^(k-1), and one vector
    holds these sums for all columns. `weight` counts an entry for each node of its row.
    """
    if entry.numel() == 0 or powers == 0:
        return row.new_full((num_rows,), powers), powers
    sums = weight.new_zeros(num_rows).index_add_(0, column, weight)  # of the columns of M
    largest, growth = torch.stack([entry.max(), sums.max()]).tolist()
    all_single, bound = 0, largest
    while bound < SINGLE and all_single < 2 * powers:
        all_single, bound = all_single + 1, bound * growth
    if all_single >= powers:
        return row.new_full((num_rows,), powers), all_single
    single, below, sums = row.new_zeros(num_rows), row.new_ones(num_rows).bool(), torch.ones_like(sums)
    for _ in range(powers):
        below = below & (largest * sums < SINGLE)
        if not bool(below.any()):
            break
        single += below
        sums = torch.zeros_like(sums).index_add_(0, column, weight * sums.index_select(0, row))
    return single, all_single
