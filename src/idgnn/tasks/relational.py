"""What is asked of relational data: a number or a class of an entity at a time, or a ranking of items for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot
from torch_geometric.data import HeteroData

from idgnn.choices import RelationalKind
from idgnn.graphs.relational.columns import Codes
from idgnn.graphs.relational.graph import check_within_data
from idgnn.graphs.relational.task_tables import ItemLists, TimedQueries
from idgnn.tasks.heuristics import direct_uses, find_uses, past_visits, popularity
from idgnn.tasks.objective import Binary, Classes, Objective, Quantity
from idgnn.tasks.ranking import ranking_metrics, top_items


@dataclass(frozen=True)
class Ranking:
    """Items in the order of their scores: logistic loss over all items, MAP at k."""

    k: int = 10
    metric = "map"
    higher_is_better = True

    def loss(self, score: Tensor, items: ItemLists) -> Tensor:
        """Binary cross-entropy of the scores `[queries, items]`, every item being relevant or not.

        Items that were not there yet, of score -inf, do not count.
        """
        wanted = items.as_mask(score.size(1)).to(score.dtype)
        there = score > float("-inf")
        if bool(there.all()):
            return binary_cross_entropy_with_logits(score, wanted)
        return binary_cross_entropy_with_logits(score[there], wanted[there], reduction="sum") / there.sum().clamp(min=1)

    def measure(self, score: Tensor, items: ItemLists) -> dict[str, float]:
        """The metrics of :func:`~idgnn.tasks.ranking.ranking_metrics` at k."""
        return ranking_metrics(top_items(score, self.k), items)


@dataclass(frozen=True)
class RelationalProblem:
    """A graph with times, and the queries of `"train"`, `"valid"` and `"test"`."""

    kind: RelationalKind
    graph: HeteroData
    queries: Mapping[str, TimedQueries]
    upto: Mapping[str, int] = field(default_factory=dict)
    """For parts of the split: the time up to which their queries see the data, if that is before their own time."""
    k: int = 10
    """The length of the rankings that are measured."""
    columns: Codes | None = None
    """The columns of the tables, if they are in the graph as `tf`, for the encoders of pytorch-frame."""
    classes: tuple[str, ...] | None = None
    """The names of the classes; `None`: 0 and 1."""

    def __post_init__(self) -> None:
        for part, queries in self.queries.items():
            if not len(queries):
                raise ValueError(f"the part {part!r} has no queries, expected at least one.")
            if queries.items is not None and not queries.items.item.numel():
                raise ValueError(f"no query of the part {part!r} has a relevant item, expected at least one.")
            check_within_data(self.graph, self.seen_until(part), f"the part {part!r}")

    def seen_until(self, part: str) -> Tensor:
        """For each query the time before which the data is seen, `[queries]`."""
        time = self.queries[part].time
        return time.clamp(max=self.upto[part]) if part in self.upto else time

    @property
    def longest_lag(self) -> int:
        """The longest time, in seconds, between what a query sees and its own time."""
        return max(int((self.queries[part].time - self.seen_until(part)).max()) for part in self.queries)

    @property
    def entity_type(self) -> str:
        """The table of the entities."""
        return self.queries["train"].entity_type

    @property
    def item_type(self) -> str | None:
        """The table of the items, if they are ranked."""
        return self.queries["train"].item_type

    def objective(self) -> Objective | Ranking:
        """The loss and the metrics."""
        target = self.queries["train"].target
        if self.kind == "recommendation":
            return Ranking(self.k)
        assert target is not None
        if self.kind == "entity-regression":
            return Quantity.of(target, "absolute")
        names = self.classes or ("0", "1")
        if strange := sorted(set(target.tolist()) - set(range(len(names)))):
            raise ValueError(
                f"the targets of a classification hold {strange[:5]}, expected 0 and 1, or the numbers of the classes. "
                "For numbers use entity-regression."
            )
        if len(names) < 2:
            raise ValueError(f"the training part has the class {', '.join(names)} alone, expected at least two.")
        return Binary() if len(names) == 2 else Classes(len(names))

    @property
    def out_channels(self) -> int:
        """The number of outputs for a query about an entity."""
        objective = self.objective()
        return 1 if isinstance(objective, Ranking) else objective.num_outputs

    def heuristics(self, part: str, years: float = 5.0) -> dict[str, dict[str, float]]:
        """Metrics without a network, to be printed beside every result.

        For items: how often they were used in the last years, and ever; how often by the entity itself. For entities:
        the mean, the median or the most frequent class of the training targets.
        """
        queries, objective = self.queries[part], self.objective()
        if isinstance(objective, Ranking):
            return self._rankings(objective, part, years)
        train = self.queries["train"].target
        target = queries.target
        assert train is not None and target is not None
        if isinstance(objective, Classes):
            counts = _classes_of_entity(self.queries["train"], queries, objective.num_classes)  # [queries, classes]
            every = torch.bincount(train, minlength=objective.num_classes).float().expand_as(counts)
            own = torch.where(counts.sum(1, keepdim=True) > 0, counts, every)
            rows = {"most frequent class": every, "most frequent of the entity": own}
            return {name: objective.measure(value, target, target) for name, value in rows.items()}
        mean = _mean_of_entity(self.queries["train"], queries)
        if isinstance(objective, Quantity):
            median = train.median().expand(len(queries))
            rows = {"median": median, "mean of the entity": mean}
            return {name: {"mae": (value - target).abs().mean().item()} for name, value in rows.items()}
        return {"mean of the entity": objective.measure(torch.logit(mean, 1e-6).unsqueeze(1), target, target)}

    def _rankings(self, objective: Ranking, part: str, years: float) -> dict[str, dict[str, float]]:
        queries = replace(self.queries[part], time=self.seen_until(part))
        assert queries.item_type is not None and queries.items is not None
        count = int(self.graph[queries.item_type].num_nodes)
        rows, own = (
            direct_uses(self.graph, queries.item_type),
            find_uses(self.graph, self.entity_type, queries.item_type),
        )
        found = {}
        for name, span in (("1 year", 1.0), (f"{years:g} years", years), ("all years", None)):
            popular = popularity(rows, queries, count, span)
            found[f"most used, {name}"] = objective.measure(popular, queries.items)
            visits = past_visits(own, popular, queries, count, span)
            found[f"past visits, {name}"] = objective.measure(visits, queries.items)
        return found


def _mean_of_entity(train: TimedQueries, queries: TimedQueries) -> Tensor:
    """The mean training target of each query's entity; of all where it has none."""
    assert train.target is not None
    size = int(torch.cat([train.entity, queries.entity]).max()) + 1
    count = torch.bincount(train.entity, minlength=size)
    target = train.target.float()
    total = torch.zeros(size).index_add(0, train.entity, target)
    return torch.where(count > 0, total / count.clamp(min=1), target.mean())[queries.entity]


def _classes_of_entity(train: TimedQueries, queries: TimedQueries, num_classes: int) -> Tensor:
    """How often each query's entity had each class in training, `[queries, classes]`."""
    assert train.target is not None
    size = int(torch.cat([train.entity, queries.entity]).max()) + 1
    counts = torch.zeros(size, num_classes).index_add(0, train.entity, one_hot(train.target, num_classes).float())
    return counts[queries.entity]
