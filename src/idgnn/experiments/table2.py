"""Table 2: graph properties that message-passing GNNs cannot see."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.columns import Column
from idgnn.experiments.models import Model
from idgnn.experiments.spec import Protocol, Spec

NAME = "table2"

COLUMNS = (
    Column("node-ScaleFree", "ScaleFree", "node-clustering", "ScaleFree", "accuracy", 1000, released_dataset="ba"),
    Column("node-SmallWorld", "SmallWorld", "node-clustering", "SmallWorld", "accuracy", 1000, released_dataset="ws"),
    Column("node-ENZYMES", "ENZYMES", "node-clustering", "ENZYMES", "accuracy", 1000, released_smallest=100),
    Column("node-PROTEINS", "PROTEINS", "node-clustering", "PROTEINS", "accuracy", 1000, released_smallest=100),
    Column("path-ScaleFree", "ScaleFree", "shortest-path", "ScaleFree", "accuracy", 100, 32, released_dataset="ba"),
    Column("path-SmallWorld", "SmallWorld", "shortest-path", "SmallWorld", "accuracy", 100, 32, released_dataset="ws"),
    Column(
        "path-ENZYMES",
        "ENZYMES",
        "shortest-path",
        "ENZYMES",
        "accuracy",
        100,
        32,
        released_smallest=100,
        released_batch_size=8,
    ),
    Column(
        "path-PROTEINS",
        "PROTEINS",
        "shortest-path",
        "PROTEINS",
        "accuracy",
        100,
        32,
        released_smallest=100,
        released_batch_size=8,
    ),
    Column(
        "graph-ScaleFree",
        "ScaleFree",
        "graph-clustering",
        "ScaleFree",
        "accuracy",
        1000,
        released_dataset="ba500",
        released_batch_size=64,
        released_lr=0.1,
    ),
    Column(
        "graph-SmallWorld",
        "SmallWorld",
        "graph-clustering",
        "SmallWorld",
        "accuracy",
        1000,
        released_dataset="ws500",
        released_batch_size=64,
        released_lr=0.1,
    ),
)


def specs(models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """The runs of all columns."""
    return [spec for column in COLUMNS for spec in column.specs(NAME, models, protocol, seeds)]
