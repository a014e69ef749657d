"""Classification of nodes, pairs of nodes or graphs: classes that come with the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.graphs.dataset import Dataset
from idgnn.tasks.objective import Binary, Classes, Objective
from idgnn.tasks.task import Task
from idgnn.tasks.task_settings import TaskSettings


@dataclass(frozen=True)
class Classification(Task):
    """Classes 0, 1, 2, ... in `y` or `edge_label`, or -1 for unknown; two are judged by ROC AUC, more by accuracy."""

    def objective(self, settings: TaskSettings, targets: Mapping[str, Tensor]) -> Objective:
        """Binary or multi-class cross-entropy. Classes are counted over all parts: training may lack one."""
        every = torch.cat(list(targets.values()))
        if every.is_floating_point():
            raise ValueError(
                f"the labels are quantities, such as {every[0].item():g}, but {settings.name} expects classes 0, 1, 2, "
                f"... Use {settings.level}-regression, or labels that are whole numbers (y.long())."
            )
        num_classes, num_different = int(every.max()) + 1, every.unique().numel()
        if num_classes > max(2 * num_different, 100):
            raise ValueError(
                f"the labels go up to {num_classes - 1}, but only {num_different} different ones occur, expected "
                "classes 0, 1, 2, ... Number them with y.unique(return_inverse=True)[1]."
            )
        if num_classes < 2:
            raise ValueError(f"all labels for {settings.name} are the same, expected at least two classes.")
        count = torch.bincount(targets["train"], minlength=num_classes)
        weights = None
        if settings.class_weights == "balanced":
            # A class that training lacks has no errors there, whatever its weight.
            weights = tuple((count.sum() / (num_classes * count.clamp(min=1))).tolist())
        majority = int(count.argmax()) if count.sum() else None
        if num_classes == 2:
            return Binary(majority=majority, class_weights=weights)
        return Classes(num_classes, majority=majority, class_weights=weights)

    def class_names(self, dataset: Dataset, settings: TaskSettings) -> tuple[str, ...] | None:
        """The categories of the label column, if the graphs come from files."""
        label = None if dataset.schema is None else dataset.schema.label
        return None if label is None else label.categories
