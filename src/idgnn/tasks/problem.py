"""A task on a dataset: what is trained on, what is held out, and what counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from idgnn.choices import Level
from idgnn.tasks.objective import Objective
from idgnn.tasks.part import Part


@dataclass(frozen=True)
class Problem:
    """Everything that training needs beside a network."""

    level: Level
    objective: Objective
    train: Part
    held_out: Mapping[str, Part] = field(default_factory=dict)
    """`"valid"`, and `"test"` if there is one."""
    graph_ids: Mapping[str, list[int]] = field(default_factory=dict)
    """For each part, which graphs of the dataset are in it."""
    classes: tuple[str, ...] | None = None
    """What the classes are called, if they have names."""

    @property
    def in_channels(self) -> int:
        """The number of node features."""
        return self.train.x.size(1)

    @property
    def edge_dim(self) -> int | None:
        """The number of edge features, if there are any."""
        return None if self.train.edge_attr is None else self.train.edge_attr.size(1)
