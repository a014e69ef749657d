"""From a dataset and the settings of a task to what training needs: query sets and an objective."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from idgnn.choices import Level, TaskName
from idgnn.graphs.dataset import Dataset
from idgnn.tasks.classification import Classification
from idgnn.tasks.clustering import Clustering
from idgnn.tasks.counting import Counting
from idgnn.tasks.link_prediction import LinkObjective, LinkPrediction
from idgnn.tasks.node_features import NodeFeatures, choose_features, give_features
from idgnn.tasks.objective import Binary, Classes, Objective, Quantity
from idgnn.tasks.quantities import Quantities
from idgnn.tasks.query_set import QuerySet
from idgnn.tasks.regression import Regression
from idgnn.tasks.shortest_path import ShortestPath
from idgnn.tasks.task import Task
from idgnn.tasks.task_settings import TaskSettings

TASKS: dict[TaskName, Task] = {
    "node-classification": Classification(),
    "node-regression": Regression(),
    "node-clustering": Clustering(),
    "node-counting": Counting(),
    "link-prediction": LinkPrediction(),
    "shortest-path": ShortestPath(),
    "pair-classification": Classification(),
    "graph-classification": Classification(),
    "graph-regression": Regression(),
    "graph-clustering": Clustering(),
    "graph-counting": Counting(),
}

_OBJECTIVES: tuple[type[Objective], ...] = (Binary, Classes, LinkObjective, Quantity, Quantities)


class OneClassWarning(UserWarning):
    """A held-out part has a single class, so that ROC AUC is not defined on it."""


@dataclass(frozen=True)
class Problem:
    """A task on a dataset: everything that training needs besides a network."""

    level: Level
    objective: Objective
    train: QuerySet
    held_out: Mapping[str, QuerySet] = field(default_factory=dict)
    """`"valid"`, and `"test"` if there is one."""
    graph_ids: Mapping[str, list[int]] = field(default_factory=dict)
    """For each part, the graphs of the dataset that are in it."""
    classes: tuple[str, ...] | None = None
    """The names of the classes, if they have any."""
    symmetric: bool = False
    """Whether pairs have no direction."""
    features: NodeFeatures = field(default_factory=NodeFeatures)
    """What nodes without features were given."""

    @property
    def in_channels(self) -> int:
        """The number of node features."""
        return self.train.x.size(1)

    @property
    def edge_dim(self) -> int | None:
        """The number of edge features, if there are any."""
        return None if self.train.edge_attr is None else self.train.edge_attr.size(1)


def make_problem(dataset: Dataset, settings: TaskSettings, seed: int = 0) -> Problem:
    """The task that the settings describe, on a dataset; `seed` decides the split and the negatives of validation."""
    if not dataset.graphs:
        raise ValueError("there are no graphs, expected at least one.")
    task = TASKS[settings.name]
    dataset = replace(dataset, graphs=task.labeled(dataset.graphs, settings))
    features = choose_features(settings, dataset)
    parts, graph_ids = task.split(dataset, settings, seed)
    parts = give_features(features, parts, dataset.graphs)
    targets = {name: part.target for name, part in parts.items() if part.target is not None}
    objective = _judged_by(task.objective(settings, targets), settings)
    held_out = {name: part for name, part in parts.items() if name != "train"}
    for name in held_out:
        if objective.metric == "roc_auc" and targets[name].unique().numel() < 2:
            warnings.warn(
                f"all {targets[name].numel()} labels of the {name} part are the same, and roc_auc, which compares two "
                "classes, will be NaN. Hold more out, or choose another seed.",
                OneClassWarning,
                stacklevel=2,
            )
    return Problem(
        settings.level,
        objective,
        parts["train"],
        held_out,
        graph_ids,
        task.class_names(dataset, settings),
        task.symmetric(dataset),
        features,
    )


def _judged_by(objective: Objective, settings: TaskSettings) -> Objective:
    """The objective with the metric of the settings, if they have one."""
    if settings.class_weights != "none" and getattr(objective, "class_weights", None) is None:
        raise ValueError(f"class_weights are for classifications, and {settings.name} is none. Leave them out.")
    if settings.metric is None or settings.metric == objective.metric:
        return objective
    if settings.metric not in objective.metrics:
        raise ValueError(
            f"metric is {settings.metric!r}, but {settings.name} is measured by {', '.join(objective.metrics)}. Name "
            "one of them."
        )
    return replace(cast(Any, objective), metric=settings.metric)


def objective_from_dict(values: Mapping[str, Any]) -> Objective:
    """The objective that :meth:`idgnn.tasks.objective.Objective.as_dict` described."""
    kinds = {each.kind: each for each in _OBJECTIVES}
    return kinds[values["kind"]](**{name: value for name, value in values.items() if name != "kind"})
