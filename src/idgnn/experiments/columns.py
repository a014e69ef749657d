"""The columns of the tables that train networks, under both protocols. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from idgnn.choices import TaskName
from idgnn.experiments.models import BOTH, PAPER, WALKS, Model
from idgnn.experiments.spec import Protocol, Spec, TrainJob, Variant
from idgnn.graphs.sources import Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions

# Epochs between two deals of the graphs into batches: steps are recorded as CUDA graphs, one for each batch.
RESHUFFLE_EVERY = 20


@dataclass(frozen=True)
class Column:
    """A task on a dataset, as the paper has it (`text`) and as the released code has it."""

    name: str
    title: str
    task: TaskName
    dataset: str
    metric: str
    epochs: int
    batch_size: int = 128
    split: Literal["random", "provided"] = "random"
    released_dataset: str | None = None  # if it is another one
    released_smallest: int | None = None  # how many of its smallest graphs
    released_min_nodes: int = 5  # of a graph that is kept
    released_epochs: int | None = None
    released_batch_size: int | None = None
    released_lr: float = 0.01
    released_schedule: Literal["cosine", "constant"] = "cosine"

    @property
    def models(self) -> tuple[Model, ...]:
        """The rows that it has."""
        if self.task == "link-prediction":
            return PAPER + WALKS + BOTH
        return PAPER + WALKS if self.task == "shortest-path" else PAPER

    def spec(self, table: str, model: Model, protocol: Protocol, seed: int) -> Spec:
        """The run of one model."""
        made = self._text(model, seed) if protocol == "text" else self._released(model, seed)
        variant: Variant = model.variant if protocol == "text" else "released"
        return Spec(table, self.name, model.name, protocol, seed, TrainJob(made, variant))

    def specs(self, table: str, models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
        """The runs of all models, seed by seed. What goes beyond the paper is for the protocol of the text alone."""
        rows = [model for model in models if protocol == "text" or model in PAPER]
        return [self.spec(table, model, protocol, seed) for seed in seeds for model in rows if model in self.models]

    def _text(self, model: Model, seed: int) -> RunSettings:
        return RunSettings(
            self.dataset,
            TaskSettings(name=self.task, split=self.split),
            ModelSettings(conv=model.conv, identity=model.identity),
            TrainOptions(
                epochs=self.epochs,
                batch_size=self.batch_size,
                eval_every=max(self.epochs // 50, 1),
                reshuffle_every=1 if self.task == "link-prediction" else RESHUFFLE_EVERY,
            ),
            Selection(),
            seed,
        )

    def _released(self, model: Model, seed: int) -> RunSettings:
        epochs = self.released_epochs or self.epochs
        small = self.released_smallest is not None
        return RunSettings(
            self.released_dataset or self.dataset,
            TaskSettings(name=self.task, split=self.split),
            ModelSettings(conv=model.conv, identity=model.identity, width=_released_width(self, model), aggr="mean"),
            TrainOptions(
                epochs=epochs,
                batch_size=self.released_batch_size or self.batch_size,
                lr=self.released_lr,
                schedule=self.released_schedule,
                eval_every=max(epochs // 50, 1),
                reshuffle_every=1 if self.task == "link-prediction" else RESHUFFLE_EVERY,
            ),
            Selection(self.released_min_nodes, 200 if small else 0, self.released_smallest),
            seed,
        )


# Widths that the authors found, in the order of `CONVS`, for plain and Fast, and for Full.
_RELEASED_WIDTHS = {
    "node": ((181, 128, 180, 128), (128, 91, 128, 91)),
    "pair": ((181, 128, 180, 128), (128, 91, 128, 91)),
    "graph": ((162, 128, 162, 128), (128, 97, 128, 97)),
    "ENZYMES graph": ((82, 65, 81, 64), (65, 49, 64, 49)),
}


def _released_width(column: Column, model: Model) -> int:
    level = TaskSettings(name=column.task).level
    kind = f"{column.dataset} graph" if level == "graph" and column.dataset == "ENZYMES" else level
    widths = _RELEASED_WIDTHS[kind][model.identity == "full"]
    return widths[("gcn", "sage", "gat", "gin").index(model.conv)]
