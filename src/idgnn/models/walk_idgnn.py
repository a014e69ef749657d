"""A linear ID-GNN for ranking items of a user-item graph, computed for all items at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from idgnn.graphs.relational.task_tables import ItemLists


class WalkIDGNN(nn.Module):
    r"""The state of every item when a user is colored, in an odd number K of rounds without nonlinearities.

    .. math:: h_{t|v}^{(k)} = d_t^{a_k} \sum_{s \in N(t)} \big( h_{s|v}^{(k-1)} + [k = 1, s = v] \big),
        \quad h^{(0)} = 0

    Only the message of the colored user v differs from the others, by 1 in the first round: this is ID-GNN-Full with
    the sum as aggregation, a power of the degree as weight, and no features. The state of item i is a weighted number
    of walks of K steps from v to i; `a_k = -1` for k < K and `a_K = 0` make it the probability that a random walk
    from v ends at i, up to a factor. Plain states are 0, so that items out of reach are ranked last, by number.

    A batch of users is `[nodes, users]`: each round is one product with the sparse adjacency matrix, `pairs * users`
    operations.

    Args:
        lists: the items of each user.
        num_items: the number of items.
        exponents: :math:`a_1, ..., a_K`, of the item, user, item ... that is reached.

    Example:
        >>> lists = ItemLists.of([[0, 1], [1, 2], [2]])
        >>> WalkIDGNN(lists, 3, exponents=(0.0, 0.0, 0.0)).scores(torch.tensor([0])).tolist()
        [[2.0, 3.0, 1.0]]
    """

    def __init__(self, lists: ItemLists, num_items: int, exponents: Sequence[float] = (-1.0, -1.0, 0.0)) -> None:
        super().__init__()
        if len(exponents) % 2 == 0:
            raise ValueError(
                f"{len(exponents)} exponents were given, expected an odd number: a walk from a user reaches items "
                "after an odd number of steps."
            )
        self.exponents = nn.Parameter(torch.tensor([float(each) for each in exponents]))
        self.num_users, self.num_items = len(lists), num_items
        self.lists = lists
        by_user = _matrix(lists.query, lists.item, len(lists), num_items)
        by_item = _matrix(lists.item, lists.query, num_items, len(lists))
        self.register_buffer("by_user", by_user, persistent=False)  # [users, items]
        self.register_buffer("by_item", by_item, persistent=False)  # [items, users]
        degree = torch.bincount(lists.item, minlength=num_items).clamp(min=1)
        self.register_buffer("item_degree", degree.float().log(), persistent=False)
        self.register_buffer("user_degree", lists.size.clamp(min=1).float().log(), persistent=False)

    def scores(self, users: Tensor) -> Tensor:
        """The states of all items for each of the users, `[users, items]`."""
        known = self.lists.take(users.to(self.lists.item.device))
        h = self.item_degree.new_zeros(self.num_items, users.numel())
        h[known.item, known.query] = 1.0  # the message of the colored user
        h = h * self._weight(0).unsqueeze(1)
        for k in range(1, self.exponents.numel()):
            h = _Product.apply(h, *((self.by_user, self.by_item) if k % 2 else (self.by_item, self.by_user)))
            h = h * self._weight(k).unsqueeze(1)
        return h.t()

    def _weight(self, k: int) -> Tensor:
        degree = self.user_degree if k % 2 else self.item_degree
        return torch.exp(self.exponents[k] * degree.to(self.exponents.dtype))


class _Product(torch.autograd.Function):
    """A sparse matrix times a dense one; the gradient takes the transpose, which is at hand."""

    @staticmethod
    def forward(ctx, h: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:  # type: ignore[override]
        ctx.transpose = transpose
        return matrix @ h

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return ctx.transpose @ gradient, None, None


def _matrix(row: Tensor, column: Tensor, num_rows: int, num_columns: int) -> Tensor:
    with _beta_matrices():
        ones = torch.ones(row.numel(), device=row.device)
        return torch.sparse_coo_tensor(
            torch.stack([row, column]), ones, (num_rows, num_columns), check_invariants=False
        ).to_sparse_csr()


@contextmanager
def _beta_matrices():
    """PyTorch says that compressed matrices are in beta, once a process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        yield
