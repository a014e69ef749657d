"""Ranking all items for all users of a user-item graph: the linear ID-GNN, two towers, and walks without training."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.nn import LightGCN

from idgnn.graphs.relational.interactions import Interactions
from idgnn.graphs.relational.task_tables import ItemLists
from idgnn.models.walk_idgnn import WalkIDGNN
from idgnn.tasks.ranking import ranking_metrics, top_items

Show = Callable[[str], None]


@torch.no_grad()
def rank_all(
    scores: Callable[[Tensor], Tensor], known: ItemLists, users: Tensor, k: int = 20, batch_size: int = 512
) -> Tensor:
    """The k best items, of those that a user does not have already, `[users, k]`; a batch of users at a time."""
    device = known.item.device
    found = [top_items(scores(some), k, known.take(some)) for some in users.to(device).split(batch_size)]
    return torch.cat(found) if found else torch.empty(0, k, dtype=torch.long)


def measure_all(
    scores: Callable[[Tensor], Tensor], data: Interactions, users: Tensor | None = None, k: int = 20
) -> dict[str, float]:
    """The metrics at k over the users, or those given, that have test items."""
    if users is None:
        users = torch.arange(data.num_users)
    users = users.to(data.test.size.device)
    users = users[data.test.size[users] > 0]
    return ranking_metrics(rank_all(scores, data.train, users, k), data.test.take(users))


def most_popular(data: Interactions) -> Callable[[Tensor], Tensor]:
    """Scores of all items by their number of users."""
    count = torch.bincount(data.train.item, minlength=data.num_items).float()
    return lambda users: count.expand(users.numel(), -1)


def fit_exponents(
    data: Interactions,
    *,
    start: tuple[float, ...] = (-1.0, -1.0, 0.0),
    users: int = 2000,
    share: float = 0.2,
    steps: tuple[float, ...] = (0.2, 0.1),
    seed: int = 0,
    show: Show | None = None,
    device: str = "cpu",
) -> WalkIDGNN:
    """The linear ID-GNN with the exponents that rank held-out training pairs best, by NDCG at 20.

    There are three numbers to learn, so that no gradient is needed: one exponent after the other is moved by a step, in
    either direction, for as long as that helps; then with the next, smaller step. Each trial ranks all items for
    `users` users, on a graph without a random `share` of the training items of every user. Test items are not looked
    at.
    """
    held = to_device(data.held_out(share, seed), device)
    generator = torch.Generator().manual_seed(seed)
    some = torch.randperm(data.num_users, generator=generator)[:users]
    model = WalkIDGNN(held.train, held.num_items, start).to(device)
    tried: dict[tuple[float, ...], float] = {}

    def value(exponents: tuple[float, ...]) -> float:
        if exponents not in tried:
            with torch.no_grad():
                model.exponents.copy_(torch.tensor(exponents))
            tried[exponents] = measure_all(model.scores, held, some)["ndcg"]
            if show is not None:
                show(f"exponents {exponents}: NDCG {tried[exponents]:.4f} on held-out pairs")
        return tried[exponents]

    best = tuple(start)
    for step in steps:
        moved = True
        while moved:
            moved = False
            for k in reversed(range(len(best))):
                for sign in (-1, 1):
                    other = tuple(round(a + sign * step * (i == k), 6) for i, a in enumerate(best))
                    if value(other) > value(best):
                        best, moved = other, True
                        break
    data = to_device(data, device)
    return WalkIDGNN(data.train, data.num_items, best).to(device)


@dataclass(frozen=True)
class TowerSettings:
    """The plain GNN with two towers, LightGCN: embeddings that are learned, and averaged over the rounds."""

    channels: int = 64
    num_layers: int = 3
    epochs: int = 40
    lr: float = 0.005
    batch_size: int = 4096
    temperature: float = 0.1
    weight_decay: float = 1e-6
    seed: int = 0


def train_towers(
    data: Interactions,
    settings: TowerSettings,
    *,
    device: str = "cpu",
    show: Show | None = None,
) -> Callable[[Tensor], Tensor]:
    """Trains PyG's `LightGCN` and returns its scores of all items.

    The loss is the cross-entropy of the item of a pair among all items of its batch, by cosine over a temperature.
    """
    torch.manual_seed(settings.seed)
    data = to_device(data, device)
    model = LightGCN(data.num_users + data.num_items, settings.channels, settings.num_layers).to(device)
    user, item = data.train.query, data.train.item
    edges = torch.stack([user, item + data.num_users])
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    optimizer = torch.optim.Adam(model.parameters(), settings.lr, weight_decay=settings.weight_decay)
    for epoch in range(settings.epochs):
        start, total, steps = time.perf_counter(), 0.0, 0
        for some in torch.randperm(user.numel(), device=device).split(settings.batch_size):
            h = torch.nn.functional.normalize(model.get_embedding(edges), dim=1)
            others, place = item[some].unique(return_inverse=True)
            score = h[user[some]] @ h[others + data.num_users].t() / settings.temperature  # [pairs, items of the batch]
            loss = cross_entropy(score, place)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        if show is not None:
            show(f"epoch {epoch}: loss {total / steps:.4f}, {time.perf_counter() - start:.1f} s")
    with torch.no_grad():
        h = torch.nn.functional.normalize(model.get_embedding(edges), dim=1)
    return lambda users: h[users] @ h[data.num_users :].t()


def to_device(data: Interactions, device: str) -> Interactions:
    """The lists on a device."""

    def moved(lists: ItemLists) -> ItemLists:
        return ItemLists(lists.item.to(device), lists.start.to(device))

    return Interactions(moved(data.train), moved(data.test), data.num_items)


def describe(metrics: dict[str, float]) -> dict[str, Any]:
    """The metrics that the literature on Gowalla gives, rounded."""
    return {name: round(metrics[name], 4) for name in ("recall", "ndcg")}
