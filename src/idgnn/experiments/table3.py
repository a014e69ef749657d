"""Table 3: real-world tasks."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.columns import Column
from idgnn.experiments.models import Model
from idgnn.experiments.spec import Protocol, Spec

NAME = "table3"

_LINK = "link-prediction"
_CLASS = "graph-classification"

COLUMNS = (
    Column("class-Cora", "Cora", "node-classification", "Cora", "accuracy", 100, 1),
    Column("class-CiteSeer", "CiteSeer", "node-classification", "CiteSeer", "accuracy", 100, 1),
    Column("link-ScaleFree", "ScaleFree", _LINK, "ScaleFree", "roc_auc", 100, 32, released_dataset="ba"),
    Column("link-SmallWorld", "SmallWorld", _LINK, "SmallWorld", "roc_auc", 100, 32, released_dataset="ws"),
    Column(
        "link-ENZYMES", "ENZYMES", _LINK, "ENZYMES", "roc_auc", 100, 32, released_smallest=100, released_batch_size=8
    ),
    Column(
        "link-PROTEINS", "PROTEINS", _LINK, "PROTEINS", "roc_auc", 100, 32, released_smallest=100, released_batch_size=8
    ),
    Column(
        "class-ENZYMES",
        "ENZYMES",
        _CLASS,
        "ENZYMES",
        "accuracy",
        1000,
        released_epochs=100,
        released_min_nodes=0,
    ),
    Column("class-PROTEINS", "PROTEINS", _CLASS, "PROTEINS", "accuracy", 1000, released_batch_size=64, released_lr=0.1),
    Column("class-BZR", "BZR", _CLASS, "BZR", "accuracy", 1000, released_batch_size=64, released_lr=0.1),
    Column(
        "class-ogbg-molhiv",
        "ogbg-molhiv",
        _CLASS,
        "ogbg-molhiv",
        "roc_auc",
        100,
        split="provided",
        released_lr=0.001,
        released_schedule="constant",
    ),
)


def specs(models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """The runs of all columns."""
    return [spec for column in COLUMNS for spec in column.specs(NAME, models, protocol, seeds)]
