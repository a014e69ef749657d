"""What the classes of a task are called."""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.structure import clustering_of
from idgnn.tasks.settings import TaskSettings


def class_names(dataset: Dataset, settings: TaskSettings) -> tuple[str, ...] | None:
    """Distances, intervals of clustering coefficients, or the names in the column with the labels, if there is one.

    `dataset` has the labels of the task.
    """
    if settings.name == "shortest-path":
        return (*map(str, range(settings.cutoff)), f"{settings.cutoff} or more")
    if settings.name in ("node-clustering", "graph-clustering"):
        return _intervals(dataset, settings)
    label = None if dataset.schema is None else dataset.schema.label
    return None if label is None else label.categories


def _intervals(dataset: Dataset, settings: TaskSettings) -> tuple[str, ...]:
    """From the smallest to the largest coefficient of each class."""
    of = clustering_of(dataset.graphs)
    if settings.level == "graph":
        of = [each.mean().nan_to_num().view(1) for each in of]
    value = torch.cat(of)
    label = torch.cat([graph.y for graph in dataset.graphs if isinstance(graph.y, Tensor)])
    classes = [value[label == each] for each in range(int(label.max()) + 1)]
    return tuple(f"{each.min():.3f} to {each.max():.3f}" for each in classes)
