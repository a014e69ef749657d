"""Shortest-path distances between pairs of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.labels import shortest_paths
from idgnn.tasks.classification import Classification
from idgnn.tasks.task_settings import TaskSettings

# The same pairs for all seeds of a run: runs differ in split and weights, not in the data.
_PAIR_SEED = 0


@dataclass(frozen=True)
class ShortestPath(Classification):
    """The distance between two nodes of a random pair, with all distances from `cutoff` on in one class."""

    # Distances are counted in the direction of the messages, from the colored node to the node that is read.
    pair_columns = ("target", "source")

    def labeled(self, graphs: list[Data], settings: TaskSettings) -> list[Data]:
        """Random pairs of each graph with their distances; pairs without a path are left out."""
        return shortest_paths(graphs, settings.pairs, settings.cutoff, _PAIR_SEED)

    def class_names(self, dataset: Dataset, settings: TaskSettings) -> tuple[str, ...]:
        """The distances."""
        return (*map(str, range(settings.cutoff)), f"{settings.cutoff} or more")
