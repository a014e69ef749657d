"""The names that options are chosen from, and the checks of option values. Imports no PyTorch.

Every list of names stands here once: signatures, the command line and error messages take it from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

ConvName = Literal["gcn", "sage", "gat", "gin", "gine"]
"""The operators of :class:`idgnn.IdentityConv`."""

Aggregation = Literal["max", "mean", "sum"]
"""How `"sage"` aggregates messages."""

EdgeTypeConv = Literal["linear", "sage", "gat", "gin", "gine"]
"""The messages of an edge type in :class:`idgnn.HeteroIDGNN`; GCN's weights are those of one node type."""

EdgeTypeSum = Literal["sum", "attention"]
"""How :class:`idgnn.HeteroIDGNN` puts edge types together."""

Identity = Literal["full", "fast", "none"]
"""ID-GNN-Full, ID-GNN-Fast, or the plain GNN."""

Color = Literal["message", "message+update"]
"""What has second weights: the messages of colored rows (Eq. 3), or also what a colored row keeps of its own state."""

SecondNodesName = Literal["neighbors", "ball", "all"]
"""The second nodes of a node where two nodes are colored: its neighbors, a ball around it, all it is connected with."""

Activation = Literal["relu", "gelu", "silu"]
"""The nonlinearity of a network; the last two are smooth."""

Pool = Literal["sum", "mean", "max"]
"""How the embeddings of a node under two colors are pooled over second nodes."""

CycleScale = Literal["standardized", "log", "counts", "walk"]
"""Scale of closed-walk counts: logarithms with mean 0 and deviation 1 over the training graphs, logarithms, the counts
themselves, or return probabilities of the random walk."""

PairHeadName = Literal["mlp", "paper"]
"""How pairs are read: by an MLP, or as in the paper, where one linear layer reads the pairs of ID-GNN-Full."""

Level = Literal["node", "pair", "graph"]
"""What a prediction is about."""

FeatureName = Literal["constant", "degree", "onehot", "embedding", "counts", "auto"]
"""What nodes without features are given: the number 1, logarithms of their degrees, a number of their own as a one-hot
code or as a learned vector, logarithms of closed-walk counts, or what suits the graphs and the task."""

NodePattern = Literal[
    "cycle3",
    "cycle4",
    "cycle5",
    "cycle6",
    "tailed_triangle",
    "chordal_cycle",
    "clique4",
    "path4",
    "triangle_rectangle",
]
"""What is counted at a node: cycles through it; patterns with the node at the end of the tail, at a corner of degree 2,
in the clique (two for each), at the start of the path, at the tip of the triangle."""

GraphPattern = Literal["triangle", "tailed_triangle", "star3", "cycle4", "custom", "cycle5", "cycle6"]
"""What is counted in a graph."""

NodeTask = Literal["node-classification", "node-regression", "node-clustering", "node-counting"]
PairTask = Literal["link-prediction", "shortest-path", "pair-classification"]
GraphTask = Literal["graph-classification", "graph-regression", "graph-clustering", "graph-counting"]
TaskName = Literal[NodeTask, PairTask, GraphTask]
"""The tasks, by what their predictions are about; :mod:`idgnn.tasks.problem` has their definitions."""

RelationalKind = Literal["entity-classification", "entity-regression", "recommendation"]
"""The tasks on a folder of tables; :mod:`idgnn.tasks.relational` has their definitions."""

ColumnEncoding = Literal["linear", "frame"]
"""How the columns of tables become states: by our features and a linear layer, or by the encoders of pytorch-frame."""

TASK_LEVEL: dict[TaskName, Level] = {
    **{name: "node" for name in get_args(NodeTask)},
    **{name: "pair" for name in get_args(PairTask)},
    **{name: "graph" for name in get_args(GraphTask)},
}

ErrorName = Literal["squared", "absolute"]
"""The loss of quantities: mean squared or mean absolute error."""

MetricName = Literal[
    "accuracy",
    "macro_f1",
    "balanced_accuracy",
    "roc_auc",
    "average_precision",
    "mrr",
    "hits@1",
    "hits@10",
    "hits@50",
    "mae",
]
"""What a network is judged by; each task has some of them."""

EdgeInput = Literal["edge_attr", "edge_weight"]
"""What a layer may read of an edge."""

Tracker = Literal["tensorboard", "wandb", "mlflow"]
"""Experiment trackers that training reports to."""

TableName = Literal["table1", "table2", "table3", "table4", "table5", "table6", "memory", "expressiveness"]
"""The tables of the paper, `"memory"` of its appendix; `"expressiveness"` is beyond the paper."""

Protocol = Literal["text", "released", "recommended"]
"""`text` follows the paper, and the released code where it is silent; `released` follows the released settings;
`recommended` has the settings that we would use ourselves."""


TASK_METRICS: dict[TaskName, tuple[MetricName, ...]] = {
    name: ("mae",)
    if name.endswith(("regression", "counting"))
    else ("roc_auc", "average_precision", "accuracy", "mrr", "hits@1", "hits@10", "hits@50")
    if name == "link-prediction"
    else ("accuracy", "macro_f1", "balanced_accuracy", "roc_auc", "average_precision")
    for name in TASK_LEVEL
}
"""The metrics that a task may be judged by; of a classification the last two if there are two classes."""


@dataclass(frozen=True)
class TwoColorOptions:
    """What networks and identity graphs with two colors can be told, with the defaults."""

    second: SecondNodesName = "neighbors"
    radius: int = 2
    pool: Pool = "sum"
    with_self: bool = False
    directed: bool = False

    def check_used(self, colors: int) -> None:
        """Refuses any other value than the default where there is one color: a result would look as if it mattered."""
        if colors == 2:
            return
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given = [f"{name}={value!r}" for name, value in given.items() if value != getattr(TwoColorOptions, name)]
        if given:
            has, those = ("has", "it") if len(given) == 1 else ("have", "them")
            said = f"{', '.join(given)} {has} no effect on a single color."
            raise ValueError(f"{said} Add colors=2 (--colors 2), or leave {those} out.")


def check_choices(settings: Any) -> None:
    """Refuses a value that is none of those that the `Literal` of its field names, or of another type than its field.

    Numbers are left to :func:`check_counts` and :func:`check_numbers`.
    """
    for name, kind in get_type_hints(type(settings)).items():
        value, kinds = getattr(settings, name), get_args(kind)
        if get_origin(kind) is not Literal and NoneType in kinds:
            if value is None:
                continue
            kind = next(each for each in kinds if each is not NoneType)
        if get_origin(kind) is Literal and value not in get_args(kind):
            raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(str, get_args(kind)))}.")
        if kind is bool and not isinstance(value, bool):
            raise ValueError(f"{name} is {value!r}, expected True or False.")
        if kind is str and not isinstance(value, str):
            raise ValueError(f"{name} is {value!r}, expected a text.")


def check_num_colors(colors: int, identity: Identity = "full") -> None:
    """Refuses any other number of colors than one or two, and two of a network that has none."""
    if isinstance(colors, bool) or not isinstance(colors, Integral) or colors not in (1, 2):
        raise ValueError(f"colors is {colors!r}, expected 1 or 2: how many nodes of a query have a color.")
    if colors == 2 and identity != "full":
        raise ValueError(f"colors is 2, but identity is {identity!r}, which has no colors. Use identity='full'.")


def check_pool(pool: Pool) -> None:
    """Refuses another pool than those there are."""
    if pool not in get_args(Pool):
        raise ValueError(f"pool is {pool!r}, expected one of {', '.join(map(repr, get_args(Pool)))}.")


def check_activation(act: Activation) -> None:
    """Refuses any other name."""
    if act not in get_args(Activation):
        raise ValueError(f"act is {act!r}, expected one of {', '.join(map(repr, get_args(Activation)))}.")


def check_flags(settings: Any, names: tuple[str, ...]) -> None:
    """Refuses what is neither true nor false, such as a text: it would count as one of them."""
    for name in names:
        value = getattr(settings, name)
        if value not in (True, False):
            raise ValueError(f"{name} is {value!r}, expected True or False.")


def check_counts(settings: Any, names: tuple[str, ...], least: int = 1) -> None:
    """Refuses what is not a whole number of at least `least`."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is {value!r}, expected a whole number of at least {least}.")


def check_numbers(settings: Any, names: tuple[str, ...]) -> None:
    """Refuses what is not a finite number."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}, expected a finite number.")
