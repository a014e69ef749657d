"""How often patterns occur at a node or in a graph."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.choices import GraphPattern, NodePattern
from idgnn.tasks.objective import Objective, spread
from idgnn.tasks.quantities import Quantities
from idgnn.tasks.task import Task
from idgnn.tasks.task_settings import TaskSettings


@dataclass(frozen=True)
class Counting(Task):
    """The counts of some patterns, by one network: `node_counts` `[num_nodes, 9]` or `graph_counts` `[1, 7]`.

    Errors are in standard deviations of the counts: of nodes over the training and the validation part, as I2-GNN
    (Huang et al., 2023) has it; of graphs over all parts, as GNN-AK (Zhao et al., 2022).
    """

    quantity = True

    def labeled(self, graphs: list[Data], settings: TaskSettings) -> list[Data]:
        """The chosen columns as `y`."""
        every = patterns_of(settings)
        column = torch.tensor([every.index(name) for name in chosen_patterns(settings)])
        name = f"{settings.level}_counts"
        found = []
        for graph in graphs:
            counts = graph.get(name)
            if not isinstance(counts, Tensor) or counts.dim() != 2 or counts.size(1) != len(every):
                given = list(counts.shape) if isinstance(counts, Tensor) else counts
                raise ValueError(
                    f"a graph has {name} {given}, but {settings.name} expects the counts of {', '.join(every)} in "
                    f"{len(every)} columns. Use the dataset counting, or set {name} on every graph."
                )
            labeled = copy(graph)
            labeled.y = counts[:, column]
            found.append(labeled)
        return found

    def objective(self, settings: TaskSettings, targets: Mapping[str, Tensor]) -> Objective:
        """Standardized by the training part alone."""
        train = targets["train"]
        known = [targets[name] for name in targets if settings.level == "graph" or name in ("train", "valid")]
        return Quantities(
            names=chosen_patterns(settings),
            mean=tuple(train.double().mean(0).tolist()),
            scale=tuple(spread(column) for column in train.unbind(1)),
            unit=tuple(spread(column) for column in torch.cat(known).unbind(1)),
            error=settings.error,
        )


def patterns_of(settings: TaskSettings) -> tuple[str, ...]:
    """All patterns of the level of a task, in the order of their columns."""
    return get_args(NodePattern if settings.level == "node" else GraphPattern)


def chosen_patterns(settings: TaskSettings) -> tuple[str, ...]:
    """The patterns that are counted; all of them if none are named."""
    every = patterns_of(settings)
    unknown = [name for name in settings.patterns if name not in every]
    if unknown:
        raise ValueError(f"patterns are {list(settings.patterns)}, expected some of {', '.join(every)}.")
    return settings.patterns or every
