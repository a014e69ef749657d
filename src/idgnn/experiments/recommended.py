"""The protocol `recommended`: the settings that we would use ourselves, for each task. Imports no PyTorch.

Data, splits and score are those of `text`. A task has one recipe for all of its columns and for plain GNN, ID-GNN-Fast
and ID-GNN-Full alike, so that gains stay comparable. Recipes are chosen among :data:`CANDIDATES` by an inner split of
the training part (:mod:`idgnn.experiments.choose`), never by the validation part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from idgnn.choices import Aggregation, TaskName
from idgnn.experiments.paper_models import PAPER, TWO_COLORS, WALKS, Model
from idgnn.experiments.protocols import Setup
from idgnn.experiments.spec import Variant
from idgnn.graphs.sources import Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import TrainOptions

Kind = Literal[
    "node-clustering",
    "shortest-path",
    "graph-clustering",
    "node-classification",
    "link-prediction",
    "two-color-links",
    "graph-classification",
    "ogbg-molhiv",
]
"""What has a recipe of its own: a task; of graph classification a large dataset apart from small ones, and of links the
networks with two colors, which overfit the training links where others do not."""

_EVALUATIONS = 10  # of a run; before each, BatchNorm's statistics are estimated again
_RESHUFFLE_EVERY = 20  # epochs: what the stored runs were made with


@dataclass(frozen=True)
class Recipe:
    """How the networks of a task are trained; what it does not name has the default of the library."""

    epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    dropout: float = 0.0
    layers: int | None = None
    aggr: Aggregation = "sum"
    """Of SAGE. A maximum cannot count, and counts are what colors are for."""

    def training(self, task: TaskName) -> TrainOptions:
        """Adam with a cosine schedule."""
        return TrainOptions(
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            weight_decay=self.weight_decay,
            eval_every=max(self.epochs // _EVALUATIONS, 1),
            reshuffle_every=1 if task == "link-prediction" else _RESHUFFLE_EVERY,  # its queries are new in every epoch
            reestimate_batchnorm=True,
        )

    def network(self, model: Model) -> ModelSettings:
        """The network of a model."""
        return ModelSettings(
            conv=model.conv,
            identity=model.identity,
            color="message+update",
            colors=model.colors,
            aggr=self.aggr,
            cycle_scale="standardized",
            dropout=self.dropout,
            layers=self.layers,
            pair_head="mlp",
            symmetric=None,
        )


CANDIDATES: dict[Kind, dict[str, Recipe]] = {
    "node-clustering": {
        "rate 0.01": Recipe(120, 32, 0.01, 0.0),
        "rate 0.01, decay": Recipe(120, 32, 0.01, 5e-4),
        "rate 0.01, decay, 240 epochs": Recipe(240, 32, 0.01, 5e-4),
        "rate 0.003": Recipe(120, 32, 0.003, 0.0),
    },
    "shortest-path": {
        "rate 0.01": Recipe(30, 32, 0.01, 0.0),
        "rate 0.01, decay": Recipe(30, 32, 0.01, 5e-4),
        "rate 0.005, decay": Recipe(30, 32, 0.005, 5e-4),
        "rate 0.003": Recipe(30, 32, 0.003, 0.0),
        "rate 0.003, decay": Recipe(30, 32, 0.003, 5e-4),
        "rate 0.003, decay, 60 epochs": Recipe(60, 32, 0.003, 5e-4),
    },
    "graph-clustering": {
        "rate 0.01": Recipe(300, 32, 0.01, 0.0),
        "rate 0.01, decay": Recipe(300, 32, 0.01, 5e-4),
        "rate 0.01, decay, 600 epochs": Recipe(600, 32, 0.01, 5e-4),
        "rate 0.003": Recipe(300, 32, 0.003, 0.0),
        "rate 0.003, dropout 0.1": Recipe(300, 32, 0.003, 0.0, dropout=0.1),
    },
    "node-classification": {
        "dropout 0.5": Recipe(100, 1, 0.01, 5e-4, dropout=0.5),
        "dropout 0.5, 2 layers": Recipe(100, 1, 0.01, 5e-4, dropout=0.5, layers=2),
        "dropout 0.7": Recipe(100, 1, 0.005, 5e-4, dropout=0.7),
        "dropout 0.7, 2 layers": Recipe(100, 1, 0.005, 5e-4, dropout=0.7, layers=2),
        "dropout 0.7, 2 layers, 40 epochs": Recipe(40, 1, 0.005, 5e-4, dropout=0.7, layers=2),
        "dropout 0.7, 2 layers, decay 0.005, 40 epochs": Recipe(40, 1, 0.01, 5e-3, dropout=0.7, layers=2),
    },
    "link-prediction": {
        "rate 0.01": Recipe(40, 32, 0.01, 0.0),
        "rate 0.01, decay": Recipe(40, 32, 0.01, 5e-4),
        "rate 0.003": Recipe(40, 32, 0.003, 0.0),
        "rate 0.003, 80 epochs": Recipe(80, 32, 0.003, 0.0),
        "rate 0.003, dropout 0.1": Recipe(40, 32, 0.003, 0.0, dropout=0.1),
    },
    "two-color-links": {
        "rate 0.003, 80 epochs": Recipe(80, 32, 0.003, 0.0),
        "rate 0.003, 20 epochs": Recipe(20, 32, 0.003, 0.0),
        "rate 0.001, 20 epochs": Recipe(20, 32, 0.001, 0.0),
        "rate 0.003, decay, 20 epochs": Recipe(20, 32, 0.003, 5e-4),
        "rate 0.003, dropout 0.1, 40 epochs": Recipe(40, 32, 0.003, 0.0, dropout=0.1),
        "rate 0.003, 3 layers, 20 epochs": Recipe(20, 32, 0.003, 0.0, layers=3),
        "rate 0.003, 3 layers, 40 epochs": Recipe(40, 32, 0.003, 0.0, layers=3),
    },
    "graph-classification": {
        "rate 0.003": Recipe(100, 32, 0.003, 5e-4),
        "rate 0.003, dropout 0.3": Recipe(150, 32, 0.003, 5e-4, dropout=0.3),
        "rate 0.003, dropout 0.3, 250 epochs": Recipe(250, 32, 0.003, 5e-4, dropout=0.3),
        "rate 0.003, dropout 0.5": Recipe(150, 32, 0.003, 5e-4, dropout=0.5),
        "rate 0.001, dropout 0.3": Recipe(150, 32, 0.001, 5e-4, dropout=0.3),
        "rate 0.01, dropout 0.3": Recipe(150, 32, 0.01, 5e-4, dropout=0.3),
    },
    "ogbg-molhiv": {
        "rate 0.001": Recipe(12, 128, 0.001, 0.0),
        "rate 0.001, 24 epochs": Recipe(24, 128, 0.001, 0.0),
        "rate 0.001, dropout 0.3": Recipe(12, 128, 0.001, 0.0, dropout=0.3),
        "rate 0.001, dropout 0.5": Recipe(12, 128, 0.001, 0.0, dropout=0.5),
        "rate 0.003, dropout 0.5": Recipe(12, 128, 0.003, 0.0, dropout=0.5),
    },
}
"""What is tried for each task, the same for all of its networks."""

CHOSEN: dict[Kind, str] = {
    "node-clustering": "rate 0.01, decay, 240 epochs",
    "shortest-path": "rate 0.003, decay, 60 epochs",
    "graph-clustering": "rate 0.01, decay",
    "node-classification": "dropout 0.7, 2 layers",
    "link-prediction": "rate 0.003, 80 epochs",
    "two-color-links": "rate 0.003, dropout 0.1, 40 epochs",
    "graph-classification": "rate 0.003, dropout 0.3, 250 epochs",
    "ogbg-molhiv": "rate 0.001, 24 epochs",
}
"""The candidate of each task with the best mean score on inner validation parts."""


def kind_of(task: TaskName, data: str) -> Kind:
    """Whose recipe a task on a dataset has."""
    kind = data if data == "ogbg-molhiv" else task
    if kind not in CANDIDATES:
        raise ValueError(f"there is no recipe for {task} on {data}, expected one of {', '.join(CANDIDATES)}.")
    return kind


def setup_of(
    recipe: Recipe,
    task: TaskName,
    data: str,
    split: Literal["random", "provided"] = "random",
    models: tuple[Model, ...] = PAPER,
    inner: float = 0.0,
) -> Setup:
    """A task on a dataset by a recipe; `inner` holds a share of the training part out to choose recipes by."""

    def network(model: Model) -> tuple[ModelSettings, Variant]:
        return recipe.network(model), model.variant

    settings = TaskSettings(name=task, split=split, inner=inner)
    return Setup(data, settings, recipe.training(task), Selection(), models, network)


def recommended(task: TaskName, data: str, split: Literal["random", "provided"] = "random") -> Setup:
    """The settings that we recommend. Links are read in both directions, so there are no models apart for that."""
    models = PAPER + (WALKS if task in ("shortest-path", "link-prediction") else ())
    return setup_of(_chosen(kind_of(task, data)), task, data, split, models)


def two_color_links(data: str) -> Setup:
    """The settings that we recommend for links with two colors."""
    return setup_of(_chosen("two-color-links"), "link-prediction", data, models=TWO_COLORS)


def _chosen(kind: Kind) -> Recipe:
    return CANDIDATES[kind][CHOSEN[kind]]
