"""Clustering coefficients of nodes, or their mean over a graph, in quantile bins."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.labels import graph_clustering, node_clustering
from idgnn.graphs.structure import clustering_of
from idgnn.tasks.classification import Classification
from idgnn.tasks.task_settings import TaskSettings


@dataclass(frozen=True)
class Clustering(Classification):
    """The quantile bin of the clustering coefficient."""

    def labeled(self, graphs: list[Data], settings: TaskSettings) -> list[Data]:
        """The bin of each node, or of the mean coefficient of each graph."""
        return (graph_clustering if settings.level == "graph" else node_clustering)(graphs, settings.bins)

    def class_names(self, dataset: Dataset, settings: TaskSettings) -> tuple[str, ...]:
        """From the smallest to the largest coefficient in each bin."""
        coefficients = clustering_of(dataset.graphs)
        if settings.level == "graph":
            coefficients = [each.mean().nan_to_num().view(1) for each in coefficients]
        value = torch.cat(coefficients)
        label = torch.cat([graph.y for graph in dataset.graphs if isinstance(graph.y, Tensor)])
        bins = [value[label == each] for each in range(int(label.max()) + 1)]
        return tuple(f"{each.min():.3f} to {each.max():.3f}" for each in bins)
