"""A linear ID-GNN for ranking items of a user-item graph, computed for all items at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

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

    item: Tensor
    start: Tensor
    order: Tensor
    item_start: Tensor
    user: Tensor
    item_degree: Tensor  # log, [items]
    user_degree: Tensor  # log, [users]

    def __init__(self, lists: ItemLists, num_items: int, exponents: Sequence[float] = (-1.0, -1.0, 0.0)) -> None:
        super().__init__()
        if len(exponents) % 2 == 0:
            raise ValueError(
                f"{len(exponents)} exponents were given, expected an odd number: a walk from a user reaches items "
                "after an odd number of steps."
            )
        self.exponents = nn.Parameter(torch.tensor([float(each) for each in exponents]))
        self.num_users, self.num_items = len(lists), num_items
        order = lists.item.argsort(stable=True)
        count = torch.bincount(lists.item, minlength=num_items)
        for name, value in {
            "item": lists.item,  # [pairs], by user
            "start": lists.start,  # [users + 1]
            "order": order,  # [pairs], by item
            "item_start": torch.cat([count.new_zeros(1), count.cumsum(0)]),  # [items + 1]
            "user": lists.query[order],  # [pairs], by item
            "item_degree": count.clamp(min=1).float().log(),
            "user_degree": lists.size.clamp(min=1).float().log(),
        }.items():
            self.register_buffer(name, value, persistent=False)

    def scores(self, users: Tensor, without: Tensor | None = None) -> Tensor:
        """The states of all items for each of the users, `[users, items]`.

        `without` `[pairs]` are places in the lists of items: the graph is taken without these pairs, which are to be
        predicted. Degrees are those of the whole graph.
        """
        present = self.item_degree.new_ones(self.item.numel())
        if without is not None:
            present = present.index_fill(0, without, 0.0)
        by_user = csr_matrix(self.start, self.item, present, (self.num_users, self.num_items))
        by_item = csr_matrix(self.item_start, self.user, present[self.order], (self.num_items, self.num_users))
        lists = ItemLists(torch.arange(self.item.numel(), device=self.item.device), self.start).take(users)
        h = present.new_zeros(self.num_items, users.numel())
        h[self.item[lists.item], lists.query] = present[lists.item]  # the message of the colored user
        h = h * self._weight(0).unsqueeze(1)
        for k in range(1, self.exponents.numel()):
            h = sparse_product(h, *((by_user, by_item) if k % 2 else (by_item, by_user)))
            h = h * self._weight(k).unsqueeze(1)
        return h.t()

    def _weight(self, k: int) -> Tensor:
        degree = self.user_degree if k % 2 else self.item_degree
        return torch.exp(self.exponents[k] * degree)


def sparse_product(h: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
    """`matrix @ h`; its gradient takes the transpose, which is at hand, so that none is made in each step."""
    return _Product.apply(h, matrix, transpose)  # pyright: ignore[reportReturnType]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:  # type: ignore[override]
        ctx.transpose = transpose
        return matrix @ h

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return ctx.transpose @ gradient, None, None


def csr_matrix(start: Tensor, column: Tensor, value: Tensor, size: tuple[int, int]) -> Tensor:
    """The sparse matrix whose row i has the columns and values from `start[i]` to `start[i + 1]`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")  # said once a process
        return torch.sparse_csr_tensor(start, column, value, size, check_invariants=False)
