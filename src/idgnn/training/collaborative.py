"""Ranking all items for all users of a user-item graph: the linear ID-GNN, two towers, and walks without training."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from idgnn.graphs.relational.interactions import Interactions
from idgnn.graphs.relational.task_tables import ItemLists
from idgnn.models.walk_idgnn import WalkIDGNN, csr_matrix, sparse_product
from idgnn.tasks.ranking import ranking_metrics, top_items

Show = Callable[[str], None]
_SMALLEST = 1e-8  # stands for the state of items out of reach, in a logarithm


@torch.no_grad()
def rank_all(
    scores: Callable[[Tensor], Tensor], known: ItemLists, users: Tensor, k: int = 20, batch_size: int = 512
) -> Tensor:
    """The k best items, of those that a user does not have already, `[users, k]`; a batch of users at a time."""
    found = [top_items(scores(some), k, known.take(some)) for some in users.to(known.item.device).split(batch_size)]
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


@dataclass(frozen=True)
class WalkSettings:
    """How the exponents of the linear ID-GNN are trained: three numbers, so that a few hundred users a step do."""

    exponents: tuple[float, ...] = (-1.0, -1.0, 0.0)
    """What training starts from: the random walk."""
    steps: int = 60
    users_per_step: int = 256
    share: float = 0.25
    """The share of the items of a user that is predicted from the others."""
    lr: float = 0.03
    seed: int = 0


def train_walks(
    data: Interactions, settings: WalkSettings, *, device: str = "cpu", show: Show | None = None
) -> WalkIDGNN:
    """Trains the linear ID-GNN: a softmax over all items predicts some items of a user from the user's others.

    The items that are predicted are taken out of the graph, and the others out of the softmax. The logit of an item is
    a multiple, which is learned too, of the logarithm of its state. Test items are not looked at.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    data = to_device(data, device)
    model = WalkIDGNN(data.train, data.num_items, settings.exponents).to(device)
    scale = torch.nn.Parameter(torch.ones((), device=device))
    optimizer = torch.optim.Adam([model.exponents, scale], settings.lr)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.steps)
    places = ItemLists(torch.arange(data.train.item.numel(), device=device), data.train.start)
    for step in range(settings.steps):
        users = torch.randperm(data.num_users, generator=generator)[: settings.users_per_step].to(device)
        some = places.take(users)
        held_out = (torch.rand(some.item.numel(), generator=generator) < settings.share).to(device)
        user, item = some.query, data.train.item[some.item]
        state = model.scores(users, without=some.item[held_out])  # [users, items]
        logit = scale * torch.log(state.clamp(min=_SMALLEST))
        logit = logit.index_put((user[~held_out], item[~held_out]), logit.new_tensor(float("-inf")))
        loss = -logit.log_softmax(1)[user[held_out], item[held_out]].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
        if show is not None:
            numbers = ", ".join(f"{each:.3f}" for each in model.exponents.tolist())
            show(f"step {step}: loss {loss.item():.4f}, exponents {numbers}")
    return model


@dataclass(frozen=True)
class TowerSettings:
    """The plain GNN with two towers, LightGCN: embeddings that are learned, and averaged over the rounds."""

    channels: int = 64
    num_layers: int = 3
    epochs: int = 20
    lr: float = 0.005
    batch_size: int = 8192
    temperature: float = 0.15
    weight_decay: float = 1e-6
    seed: int = 0


class LightGCN(nn.Module):
    r"""Learned vectors of users and items, and their mean over rounds of the normalized adjacency matrix:

    .. math:: \mathbf{H} = \frac{1}{K + 1} \sum_{k=0}^K (\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2})^k \mathbf{E}

    PyG's `LightGCN` makes a tensor of all messages in each round; a round is one sparse product here.
    """

    adjacency: Tensor

    def __init__(self, data: Interactions, channels: int, num_layers: int) -> None:
        super().__init__()
        self.num_layers, size = num_layers, data.num_users + data.num_items
        pair = torch.stack([data.train.query, data.train.item + data.num_users])
        row, column = torch.cat([pair, pair.flip(0)], dim=1)
        order = row.argsort(stable=True)
        row, column = row[order], column[order]
        degree = torch.bincount(row, minlength=size)
        start = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
        value = (degree[row] * degree[column]).float().rsqrt()
        self.register_buffer("adjacency", csr_matrix(start, column, value, (size, size)), persistent=False)
        self.embedding = nn.Parameter(nn.init.xavier_uniform_(torch.empty(size, channels)))

    def forward(self) -> Tensor:
        """The states of users and, behind them, items, `[users + items, channels]`."""
        h = total = self.embedding
        for _ in range(self.num_layers):
            h = sparse_product(h, self.adjacency, self.adjacency)  # it is its own transpose
            total = total + h
        return total / (self.num_layers + 1)


def train_towers(
    data: Interactions,
    settings: TowerSettings,
    *,
    device: str = "cpu",
    show: Show | None = None,
) -> Callable[[Tensor], Tensor]:
    r"""Trains :class:`LightGCN` and returns its scores of all items.

    The loss is the cross-entropy of the item of a pair among all items of its batch, by cosine over a temperature. A
    batch holds popular items more often, as wrong answers too: the logarithm of the chance that an item is in a batch
    is subtracted from its logit, as in a sampled softmax, so that popular items are not pushed down.
    """
    torch.manual_seed(settings.seed)
    data = to_device(data, device)
    model = LightGCN(data, settings.channels, settings.num_layers).to(device)
    user, item = data.train.query, data.train.item
    count = torch.bincount(item, minlength=data.num_items)
    optimizer = torch.optim.Adam(model.parameters(), settings.lr, weight_decay=settings.weight_decay)
    for epoch in range(settings.epochs):
        start, total, steps = time.perf_counter(), 0.0, 0
        for some in torch.randperm(user.numel(), device=device).split(settings.batch_size):
            h = normalize(model(), dim=1)
            others, place = item[some].unique(return_inverse=True)
            score = h[user[some]] @ h[others + data.num_users].t() / settings.temperature  # [pairs, items of the batch]
            loss = cross_entropy(score - log_chance(count[others], user.numel(), some.numel()), place)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        if show is not None:
            show(f"epoch {epoch}: loss {total / steps:.4f}, {time.perf_counter() - start:.1f} s")
    with torch.no_grad():
        h = normalize(model(), dim=1)
    return lambda users: h[users] @ h[data.num_users :].t()


def log_chance(count: Tensor, total: int, size: int) -> Tensor:
    r"""The logarithm of the chance that an item with `count` of `total` pairs is in a batch of `size` of them.

    .. math:: \log\Big(1 - \binom{N - c}{B} \Big/ \binom{N}{B}\Big)

    Example:
        >>> log_chance(torch.tensor([1, 3]), total=4, size=2).exp()
        tensor([0.5000, 1.0000])
    """
    left = total - count.double()

    def falling(n: Tensor) -> Tensor:
        """log(n (n - 1) ... (n - size + 1)), -inf if there are fewer than `size`."""
        return torch.where(n >= size, (n + 1).lgamma() - (n - size + 1).clamp(min=1).lgamma(), -torch.inf)

    return torch.log1p(-(falling(left) - falling(torch.full_like(left[:1], total))).exp()).float()


def to_device(data: Interactions, device: str) -> Interactions:
    """The lists on a device."""
    return Interactions(data.train.to(device), data.test.to(device), data.num_items)
