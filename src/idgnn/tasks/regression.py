"""Regression of nodes or graphs: quantities that come with the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from idgnn.tasks.objective import Objective, Quantity
from idgnn.tasks.task import Task
from idgnn.tasks.task_settings import TaskSettings


@dataclass(frozen=True)
class Regression(Task):
    """A number in `y`; NaN is unknown. Judged by the mean absolute error."""

    quantity = True

    def objective(self, settings: TaskSettings, targets: Mapping[str, Tensor]) -> Objective:
        """Squared or absolute error, standardized by the training part alone."""
        return Quantity.of(targets["train"], settings.error)
