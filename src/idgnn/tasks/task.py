"""What a task defines. The definitions are collected in :data:`idgnn.tasks.problem.TASKS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.tasks.labeled_queries import split_labeled_queries
from idgnn.tasks.objective import Objective
from idgnn.tasks.query_set import QuerySet
from idgnn.tasks.task_settings import TaskSettings


@dataclass(frozen=True)
class Task(ABC):
    """A task on graphs. What is not overridden is that of a task whose labels come with the graphs.

    Its name and its level (node, pair or graph) are in :mod:`idgnn.choices`, so that the command line can read them
    without importing PyTorch.
    """

    quantity: ClassVar[bool] = False
    """Whether the labels are quantities (float32) rather than classes (int64)."""
    pair_columns: ClassVar[tuple[str, str]] = ("source", "target")
    """Column names, in tables, of the node of a pair that is read and of the node that is colored."""

    def labeled(self, graphs: list[Data], settings: TaskSettings) -> list[Data]:
        """The graphs with their labels: `y`, or for pairs `edge_label_index` and `edge_label`."""
        return graphs

    def split(
        self, dataset: Dataset, settings: TaskSettings, seed: int
    ) -> tuple[Mapping[str, QuerySet], Mapping[str, list[int]]]:
        """The queries of `"train"`, `"valid"` and maybe `"test"`; and for each the ids of the graphs that are in it.

        `dataset` has the labels of :meth:`labeled`.
        """
        return split_labeled_queries(dataset, settings, seed, self.quantity)

    def symmetric(self, dataset: Dataset) -> bool:
        """Whether pairs have no direction, so that (u, v) and (v, u) have one answer."""
        return False

    @abstractmethod
    def objective(self, settings: TaskSettings, targets: Mapping[str, Tensor]) -> Objective:
        """The loss and the metrics, for the known targets of each part of the split."""

    def class_names(self, dataset: Dataset, settings: TaskSettings) -> tuple[str, ...] | None:
        """The names of the classes, if they have any. `dataset` has the labels of :meth:`labeled`."""
        return None
