"""The settings of a task under each protocol. Imports no PyTorch.

`text` follows the paper, `released` the code of its authors. A protocol is a function that returns a :class:`Setup`;
the columns of a table hold one for each of their protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from idgnn.choices import Protocol, TaskName
from idgnn.experiments.paper_models import BOTH, CONVS, PAPER, WALKS, Model
from idgnn.experiments.readings import last
from idgnn.experiments.spec import Spec, TrainJob, Variant
from idgnn.experiments.table import Column, MakeSpecs
from idgnn.graphs.sources import Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions

PROTOCOL_PHRASES: dict[Protocol, str] = {
    "text": "as we get it when we follow the {} of the paper",
    "released": "with the settings of the {} code",
    "recommended": "with the settings that are {}",
}
"""Each protocol in half a sentence, with a place for its name."""
PROTOCOLS_OF_PAPER: tuple[Protocol, ...] = ("text", "released")

PAPER_NETWORK = ModelSettings(color="message", aggr="max", cycle_scale="log", pair_head="paper", symmetric=False)
"""What the paper, or the released code, has; the defaults of the library are the settings that we recommend."""

# Epochs between two shuffles of the graphs into batches: networks that know no padding have a CUDA graph for each batch
_RESHUFFLE_EVERY = 20


@dataclass(frozen=True)
class Setup:
    """How the networks of a column are trained under one protocol."""

    data: str
    task: TaskSettings
    training: TrainOptions
    selection: Selection
    models: tuple[Model, ...]
    network: Callable[[Model], tuple[ModelSettings, Variant]]
    """The network of each model."""

    def job(self, model: Model, seed: int) -> TrainJob:
        """The run of one model."""
        network, variant = self.network(model)
        return TrainJob(RunSettings(self.data, self.task, network, self.training, self.selection, seed), variant)


Setups = Mapping[Protocol, Setup]


@dataclass(frozen=True)
class TaskColumn:
    """A task on a dataset, and its settings under each protocol that it has."""

    name: str
    title: str
    group: str
    metric: str
    setups: Setups
    beyond: Setups = field(default_factory=dict)
    """Of models beyond the paper that have settings of their own."""

    @property
    def shown(self) -> Column:
        """The column of the table: the score at the last epoch."""
        return Column(self.name, self.title, last(self.metric), self.group, metric=self.metric)

    def specs(self, table: str, protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
        """The runs of all models, seed by seed."""
        setups = [each[protocol] for each in (self.setups, self.beyond) if protocol in each]
        return [
            Spec(table, self.name, model.name, protocol, seed, setup.job(model, seed))
            for seed in seeds
            for setup in setups
            for model in setup.models
        ]


def specs_of(table: str, columns: Sequence[TaskColumn]) -> MakeSpecs:
    """The runs of some columns, column by column."""
    return lambda protocol, seeds: [
        spec for column in columns if protocol in column.setups for spec in column.specs(table, protocol, seeds)
    ]


def text(
    task: TaskName, data: str, epochs: int, batch_size: int = 128, split: Literal["random", "provided"] = "random"
) -> Setup:
    """The settings of the paper. Models beyond the paper are trained on pairs, as those beside them."""
    models = PAPER + (WALKS if task in ("shortest-path", "link-prediction") else ())
    models += BOTH if task == "link-prediction" else ()

    def network(model: Model) -> tuple[ModelSettings, Variant]:
        return replace(PAPER_NETWORK, conv=model.conv, identity=model.identity), model.variant

    settings = TaskSettings(name=task, split=split)
    return Setup(data, settings, _training(task, epochs, batch_size), Selection(), models, network)


def released(
    task: TaskName,
    data: str,
    epochs: int,
    batch_size: int = 128,
    split: Literal["random", "provided"] = "random",
    *,
    lr: float = 0.01,
    schedule: Literal["cosine", "constant"] = "cosine",
    smallest: int | None = None,
    min_nodes: int = 5,
) -> Setup:
    """The settings of the released code: its networks and widths, and of some datasets the smallest graphs alone."""
    settings = TaskSettings(name=task, split=split)
    kind = f"{data} graph" if (data, settings.level) == ("ENZYMES", "graph") else settings.level

    def network(model: Model) -> tuple[ModelSettings, Variant]:
        width = _RELEASED_WIDTHS[kind][model.identity == "full"][CONVS.index(model.conv)]
        network = replace(PAPER_NETWORK, conv=model.conv, identity=model.identity, width=width, aggr="mean")
        return network, "released"

    training = _training(task, epochs, batch_size, lr, schedule)
    selection = Selection(min_nodes, 0 if smallest is None else 200, smallest)
    return Setup(data, settings, training, selection, PAPER, network)


# Widths that the authors found, in the order of `CONVS`, for plain and Fast, and for Full.
_RELEASED_WIDTHS = {
    "node": ((181, 128, 180, 128), (128, 91, 128, 91)),
    "pair": ((181, 128, 180, 128), (128, 91, 128, 91)),
    "graph": ((162, 128, 162, 128), (128, 97, 128, 97)),
    "ENZYMES graph": ((82, 65, 81, 64), (65, 49, 64, 49)),
}


def _training(
    task: TaskName, epochs: int, batch_size: int, lr: float = 0.01, schedule: Literal["cosine", "constant"] = "cosine"
) -> TrainOptions:
    return TrainOptions(
        epochs=epochs,
        lr=lr,
        schedule=schedule,
        batch_size=batch_size,
        eval_every=max(epochs // 50, 1),
        reshuffle_every=1 if task == "link-prediction" else _RESHUFFLE_EVERY,  # its queries are new in every epoch
        reestimate_batchnorm=False,
    )
