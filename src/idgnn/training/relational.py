"""Training on relational data: queries with a time, each answered from what was known before it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from idgnn.choices import Color, Identity, check_choices, check_counts
from idgnn.graphs.relational.columns import as_dicts
from idgnn.graphs.relational.graph import aged_channels, aged_snapshot
from idgnn.graphs.relational.task_tables import TimedQueries
from idgnn.graphs.relational.times import YEAR
from idgnn.models.budget import num_parameters
from idgnn.models.hetero.config import HeteroConfig
from idgnn.models.relational_predictor import Moment, RelationalPredictor
from idgnn.models.settings import check_dropout
from idgnn.tasks.relational import Ranking, RelationalProblem
from idgnn.training.checkpoint import load_state, save_state, under
from idgnn.training.processes import choose_device


@dataclass(frozen=True)
class RelationalSettings:
    """A network over tables, and how it is trained."""

    identity: Identity = "full"
    color: Color = HeteroConfig.color
    """What has second weights in `"full"`: messages of the colored entity, or also its own update."""
    num_layers: int = 4
    """Rounds of message passing; items are often three steps away: drivers -> results -> races -> circuits."""
    hidden_channels: int = 64
    dropout: float = 0.0
    window_years: float | None = None
    """How old a row may be to be seen; all are if it is `None`."""
    lag: bool = True
    """Whether training queries see data that ends before their time, as far as those of the other parts do."""
    train_years: float | None = None
    """How far back training queries go; all are used if it is `None`."""
    epochs: int = 10
    lr: float = 0.003
    """The learning rate of the first step; it falls to 0 along a cosine."""
    select: Literal["best", "last"] = "best"
    """Which epoch counts: the best on `"valid"`, or the last, for where that part is too small to tell."""
    weight_decay: float = 0.0
    snapshots_per_step: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        check_choices(self)
        check_counts(self, ("num_layers", "hidden_channels", "epochs", "snapshots_per_step"))
        check_dropout(self.dropout)
        for name in ("window_years", "train_years"):
            years = getattr(self, name)
            if years is not None and not years > 0:
                raise ValueError(f"{name} is {years}, expected more than 0 years, or None for all.")

    as_dict = asdict


@dataclass(frozen=True)
class RelationalRun:
    """A trained network, its metrics in the best epoch, and what was measured on the way."""

    model: RelationalPredictor
    settings: RelationalSettings
    metrics: dict[str, dict[str, float]]
    """Of `"valid"` and `"test"`, with the weights of the epoch that is best on `"valid"`."""
    best_epoch: int
    epochs: list[dict[str, Any]] = field(default_factory=list)


class Moments:
    """The snapshots of a graph, each made once. `whole` are the node types that queries name: entities and items."""

    def __init__(
        self, graph: HeteroData, window_years: float | None, device: str = "cpu", whole: Sequence[str | None] = ()
    ) -> None:
        self.graph, self.window = graph, None if window_years is None else window_years * YEAR
        self.device, self.whole = device, tuple(kind for kind in whole if kind is not None)
        self._made: dict[int, Moment] = {}

    def at(self, moment: int) -> Moment:
        """What was known before a moment."""
        if moment not in self._made:
            self._made[moment] = Moment(aged_snapshot(self.graph, moment, self.window, self.whole).to(self.device))
        return self._made[moment]


def train_relational(
    problem: RelationalProblem,
    settings: RelationalSettings,
    *,
    device: str = "cpu",
    begin: Callable[[int], None] | None = None,
    show: Callable[[dict[str, Any]], None] | None = None,
    checkpoint: Path | None = None,
) -> RelationalRun:
    """Trains a network; `begin` is called with its number of parameters, `show` with the record of each epoch.

    With a `checkpoint` the state is written to that file after each epoch, and training goes on from it if it is there.
    One step takes some snapshots of the graph and the queries of their times. The part `"test"` is looked at once,
    with the weights of the epoch that counts.
    """
    device = str(choose_device(device))
    torch.manual_seed(settings.seed)
    generator = torch.Generator().manual_seed(settings.seed)
    objective = problem.objective()
    model = RelationalPredictor(
        problem.graph.metadata(),
        aged_channels(problem.graph),
        entity_type=problem.entity_type,
        item_type=problem.item_type,
        identity=settings.identity,
        color=settings.color,
        num_layers=settings.num_layers,
        hidden_channels=settings.hidden_channels,
        out_channels=problem.out_channels,
        dropout=settings.dropout,
        columns=None if problem.columns is None else as_dicts(problem.columns),
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), settings.lr, weight_decay=settings.weight_decay)
    state = _State(model, optimizer, generator)
    if checkpoint is not None and checkpoint.is_file():
        state.load(checkpoint)
    if begin is not None:
        begin(num_parameters(model))
    moments = Moments(problem.graph, settings.window_years, device, (problem.entity_type, problem.item_type))
    train = _recent(problem.queries["train"], settings.train_years)
    sign = 1 if objective.higher_is_better else -1
    for epoch in range(len(state.epochs), settings.epochs):
        start = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * (1 + math.cos(math.pi * epoch / settings.epochs)) / 2
        loss = train_epoch(model, optimizer, moments, train, problem, settings, generator)
        seconds = time.perf_counter() - start
        valid = evaluate(model, moments, problem, "valid")
        state.epochs.append({"epoch": epoch, "loss": loss, "seconds": seconds, "valid": valid})
        value = sign * valid[objective.metric]
        if state.best_value is None or value > state.best_value or settings.select == "last":
            state.best_value, state.best_epoch = value, epoch
            state.best_weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}
        if checkpoint is not None:
            state.save(checkpoint)
        if show is not None:
            show(state.epochs[-1])
    model.load_state_dict(state.best_weights)
    parts = [part for part in ("valid", "test") if part in problem.queries]
    metrics = {part: evaluate(model, moments, problem, part) for part in parts}
    return RelationalRun(model, settings, metrics, state.best_epoch, state.epochs)


@dataclass
class _State:
    """All that training changes, between two epochs."""

    model: RelationalPredictor
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    epochs: list[dict[str, Any]] = field(default_factory=list)
    best_value: float | None = None
    best_epoch: int = 0
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Writes it as one file, with the states of the random generators."""
        random = {"order": self.generator.get_state(), "cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            random["cuda"] = torch.cuda.get_rng_state()
        progress = {"epochs": self.epochs, "best_value": self.best_value, "best_epoch": self.best_epoch}
        save_state(path, self.model, self.optimizer, {"best": self.best_weights, "random": random}, progress)

    def load(self, path: Path) -> None:
        """Reads what :meth:`save` wrote."""
        device = next(self.model.parameters()).device
        tensors, progress = load_state(path, self.model, self.optimizer, device)
        self.best_weights = under("best/", tensors)
        self.epochs, self.best_value = progress["epochs"], progress["best_value"]
        self.best_epoch = progress["best_epoch"]
        random = {name: state.cpu() for name, state in under("random/", tensors).items()}
        self.generator.set_state(random["order"])
        torch.set_rng_state(random["cpu"])
        if "cuda" in random and torch.cuda.is_available():
            torch.cuda.set_rng_state(random["cuda"])


@torch.no_grad()
def predict_relational(
    model: RelationalPredictor, moments: Moments, queries: TimedQueries, seen_until: Tensor
) -> Tensor:
    """The outputs for queries, `[queries, 1]`, or the scores of all items, `[queries, items]`."""
    if not len(queries):
        raise ValueError("there are no queries to answer: the table of queries has no rows. Give at least one.")
    model.eval()
    found: list[Tensor] = []
    order: list[Tensor] = []
    for moment in seen_until.unique().tolist():
        rows = (seen_until == moment).nonzero().view(-1)
        found.append(model(moments.at(moment), queries.entity[rows], _lag(queries.time[rows], moment)).cpu())
        order.append(rows)
    return torch.cat(found)[torch.cat(order).argsort()]


def evaluate(model: RelationalPredictor, moments: Moments, problem: RelationalProblem, part: str) -> dict[str, float]:
    """The metrics of a part of the split."""
    objective, queries = problem.objective(), problem.queries[part]
    out = predict_relational(model, moments, queries, problem.seen_until(part))
    if isinstance(objective, Ranking):
        assert queries.items is not None
        return objective.measure(out, queries.items)
    assert queries.target is not None
    return objective.measure(out, queries.target, torch.zeros_like(queries.entity))


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    moments: Moments,
    train: TimedQueries,
    problem: RelationalProblem,
    settings: RelationalSettings,
    generator: torch.Generator,
) -> float:
    """One pass over the queries; the mean loss of its steps. The model is called as :class:`RelationalPredictor`."""
    objective = problem.objective()
    model.train()
    total, steps = 0.0, 0
    for group in _steps(train, problem.longest_lag if settings.lag else 0, settings.snapshots_per_step, generator):
        count = sum(rows.numel() for _, rows in group)
        optimizer.zero_grad()
        for moment, rows in group:  # a snapshot at a time: only one is in memory with its gradients
            some = train.take(rows)
            out = model(moments.at(moment), some.entity, _lag(some.time, moment))
            wanted = some.items if isinstance(objective, Ranking) else some.target
            assert wanted is not None
            loss = objective.loss(out, wanted.to(out.device)) * (rows.numel() / count)  # type: ignore[arg-type]
            loss.backward()
            total += loss.item()
        optimizer.step()
        steps += 1
    return total / max(steps, 1)


def _steps(
    train: TimedQueries, longest_lag: int, size: int, generator: torch.Generator
) -> Iterator[list[tuple[int, Tensor]]]:
    """The moments of each step, in random order, with the queries `[queries]` that are answered from each.

    With a longest lag, queries see the data at a random earlier one of the times of training.
    """
    times = train.time.unique()
    pairs = []
    for place, moment in enumerate(times.tolist()):
        rows = (train.time == moment).nonzero().view(-1)
        lag = float(torch.rand((), generator=generator)) * longest_lag
        seen = int(torch.searchsorted(times, moment - lag)) if longest_lag else place
        pairs.append((int(times[min(seen, place)]), rows))
    order = torch.randperm(len(pairs), generator=generator).tolist()
    for first in range(0, len(order), size):
        yield [pairs[i] for i in order[first : first + size]]


def _recent(train: TimedQueries, years: float | None) -> TimedQueries:
    if years is None:
        return train
    return train.take((train.time >= int(train.time.max()) - years * YEAR).nonzero().view(-1))


def _lag(queries: Tensor, moment: int) -> Tensor:
    """How many years after a moment the queries are, `[queries]`."""
    return ((queries - moment).double() / YEAR).float()
