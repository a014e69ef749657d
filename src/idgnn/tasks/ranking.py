"""Metrics of rankings, for all queries at once.

torchmetrics' retrieval metrics loop over the queries in Python, want the score of every item at once, and its recall
does not count items whose score is not positive. These take the first k items of each query, and look all of them up
together; `tests/tasks/test_ranking.py` compares both.
"""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.graphs.relational.task_tables import ItemLists


def top_items(score: Tensor, k: int, known: ItemLists | None = None) -> Tensor:
    """The k items of highest score `[queries, items]` for each query, best first, `[queries, k]`; ties by number.

    `known` are items that are not ranked, such as those of the training part. Nor are items whose score is -inf; where
    fewer than k are left, -1 follows.

    Example:
        >>> top_items(torch.tensor([[0.1, float("-inf"), 0.3]]), k=3)
        tensor([[ 2,  0, -1]])
    """
    if known is not None:
        score = score.clone()
        score[known.query, known.item] = float("-inf")
    k = min(k, score.size(1))
    if k == 0 or score.size(0) == 0:
        return torch.empty(score.size(0), k, dtype=torch.long, device=score.device)
    least = score.topk(k, dim=1).values[:, -1:]  # topk alone orders ties at will
    size = int((score >= least).sum(1).max())  # of the items that are as good as the last one
    # Sorting all items costs far more than finding the best; it is needed only where very many are equal.
    best = score.topk(size, dim=1).indices.sort(dim=1).values if size < score.size(1) // 4 else None
    if best is None:
        best = score.sort(dim=1, descending=True, stable=True).indices[:, :k]
    else:
        order = score.gather(1, best).sort(dim=1, descending=True, stable=True).indices[:, :k]
        best = best.gather(1, order)
    return best.masked_fill(score.gather(1, best) == float("-inf"), -1)


def hits(top: Tensor, relevant: ItemLists) -> Tensor:
    """Whether each ranked item `[queries, k]` is relevant; -1 is none."""
    width = int(torch.cat([top.reshape(-1), relevant.item]).max()) + 1 if top.numel() + relevant.item.numel() else 1
    wanted = (relevant.query * width + relevant.item).sort().values
    ranked = torch.arange(top.size(0), device=top.device).unsqueeze(1) * width + top
    at = torch.searchsorted(wanted, ranked).clamp(max=max(wanted.numel() - 1, 0))
    return (wanted[at] == ranked) & (top >= 0) if wanted.numel() else torch.zeros_like(ranked, dtype=torch.bool)


def ranking_metrics(top: Tensor, relevant: ItemLists) -> dict[str, float]:
    """Means over the queries that have a relevant item. `top` is `[queries, k]`, r the number of relevant items.

    - `map`: AP = 1 / min(k, r) * sum over ranks i with a hit of (hits up to i) / i
    - `recall`: hits / r
    - `ndcg`: sum over hits of 1 / log2(i + 1), divided by the largest possible sum
    - `mrr`: 1 / rank of the first hit, 0 if there is none
    - `precision`: hits / k

    Example:
        >>> ranking_metrics(torch.tensor([[7, 2, 5]]), ItemLists.of([[2, 9]]))["map"]
        0.25
    """
    size = relevant.size.double()
    hit = hits(top, relevant).double()[size > 0]  # [queries, k]
    size = size[size > 0]
    if not size.numel():
        return {name: float("nan") for name in ("map", "recall", "ndcg", "mrr", "precision")}
    k = top.size(1)
    rank = torch.arange(1, k + 1, device=top.device, dtype=torch.double)
    most = size.clamp(max=k)
    precision = hit.cumsum(1) / rank
    discount = 1 / torch.log2(rank + 1)
    ideal = discount.cumsum(0)[most.long() - 1]
    return {
        "map": ((precision * hit).sum(1) / most).mean().item(),
        "recall": (hit.sum(1) / size).mean().item(),
        "ndcg": ((hit * discount).sum(1) / ideal).mean().item(),
        "mrr": (hit / rank).max(1).values.mean().item(),
        "precision": (hit.sum(1) / k).mean().item(),
    }
