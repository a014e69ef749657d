"""What a table of the paper is made of: models as rows, tasks as columns, under both protocols. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from idgnn.choices import Protocol, TableName, TaskName
from idgnn.experiments.spec import Spec, TrainJob, Variant
from idgnn.graphs.sources import Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions

Conv = Literal["gcn", "sage", "gat", "gin"]
CONVS: tuple[Conv, ...] = ("gcn", "sage", "gat", "gin")
Family = Literal["GNN", "ID-GNN-Fast", "ID-GNN-Full", "ID-GNN-Fast, pairs", "ID-GNN-Full, both directions"]


@dataclass(frozen=True)
class Model:
    """A row of Tables 2 and 3. `name` is used in records and on the command line: `gcn`, `fast-gcn`, `full-gcn`, ..."""

    name: str
    conv: Conv
    family: Family
    identity: Literal["none", "fast", "full"]
    variant: Variant = "idgnn"


GNNS = tuple(Model(conv, conv, "GNN", "none") for conv in CONVS)
FAST = tuple(Model(f"fast-{conv}", conv, "ID-GNN-Fast", "fast") for conv in CONVS)
FULL = tuple(Model(f"full-{conv}", conv, "ID-GNN-Full", "full") for conv in CONVS)
PAPER = GNNS + FAST + FULL
"""The twelve models of the paper."""
WALKS = tuple(Model(f"walks-{conv}", conv, "ID-GNN-Fast, pairs", "fast", "walks") for conv in CONVS)
"""Beyond the paper, for pairs: ID-GNN-Fast that also reads the walk counts of the pair."""
BOTH = tuple(Model(f"both-{conv}", conv, "ID-GNN-Full, both directions", "full", "both-directions") for conv in CONVS)
"""Beyond the paper, for links: an undirected link has no direction, so both are read and averaged."""
EVERY = PAPER + WALKS + BOTH

PAPER_NETWORK = ModelSettings(color="message", aggr="max", cycle_scale="log", pair_head="paper", symmetric=False)
"""What the paper, or the released code, has; the defaults of the library are the settings that we recommend."""

# Epochs between two shuffles of the graphs into batches: each batch is captured as a CUDA graph, which takes time.
_RESHUFFLE_EVERY = 20


@dataclass(frozen=True)
class TaskColumn:
    """A task on a dataset, with the settings of the paper (`text`) and of the released code."""

    name: str
    title: str
    task: TaskName
    dataset: str
    metric: str
    epochs: int
    batch_size: int = 128
    split: Literal["random", "provided"] = "random"
    released_dataset: str | None = None  # if it is another one
    released_smallest: int | None = None  # number of its smallest graphs
    released_min_nodes: int = 5  # graphs with fewer nodes are left out
    released_epochs: int | None = None
    released_batch_size: int | None = None
    released_lr: float = 0.01
    released_schedule: Literal["cosine", "constant"] = "cosine"

    @property
    def models(self) -> tuple[Model, ...]:
        """Its rows."""
        if self.task == "link-prediction":
            return PAPER + WALKS + BOTH
        return PAPER + WALKS if self.task == "shortest-path" else PAPER

    def spec(self, table: str, model: Model, protocol: Protocol, seed: int) -> Spec:
        """The run of one model."""
        released = protocol == "released"
        epochs = (released and self.released_epochs) or self.epochs
        training = TrainOptions(
            epochs=epochs,
            batch_size=(released and self.released_batch_size) or self.batch_size,
            eval_every=max(epochs // 50, 1),
            reshuffle_every=1 if self.task == "link-prediction" else _RESHUFFLE_EVERY,
            reestimate_batchnorm=False,
        )
        network, selection = replace(PAPER_NETWORK, conv=model.conv, identity=model.identity), Selection()
        if released:
            training = replace(training, lr=self.released_lr, schedule=self.released_schedule)
            network = replace(network, width=_released_width(self, model), aggr="mean")
            min_edges = 0 if self.released_smallest is None else 200
            selection = Selection(self.released_min_nodes, min_edges, self.released_smallest)
        data = (released and self.released_dataset) or self.dataset
        task = TaskSettings(name=self.task, split=self.split)
        job = TrainJob(
            RunSettings(data, task, network, training, selection, seed), "released" if released else model.variant
        )
        return Spec(table, self.name, model.name, protocol, seed, job)

    def specs(self, table: str, models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
        """The runs of all models, seed by seed. Models beyond the paper have the protocol `text` only."""
        rows = [model for model in models if protocol == "text" or model in PAPER]
        return [self.spec(table, model, protocol, seed) for seed in seeds for model in rows if model in self.models]


# Widths that the authors found, in the order of `CONVS`, for plain and Fast, and for Full.
_RELEASED_WIDTHS = {
    "node": ((181, 128, 180, 128), (128, 91, 128, 91)),
    "pair": ((181, 128, 180, 128), (128, 91, 128, 91)),
    "graph": ((162, 128, 162, 128), (128, 97, 128, 97)),
    "ENZYMES graph": ((82, 65, 81, 64), (65, 49, 64, 49)),
}


def _released_width(column: TaskColumn, model: Model) -> int:
    level = TaskSettings(name=column.task).level
    kind = f"{column.dataset} graph" if level == "graph" and column.dataset == "ENZYMES" else level
    return _RELEASED_WIDTHS[kind][model.identity == "full"][CONVS.index(model.conv)]


@dataclass(frozen=True)
class PaperTable:
    """Everything about a table but its numbers."""

    name: TableName
    title: str
    specs: Callable[[Sequence[Model], Protocol, Sequence[int]], list[Spec]]
    """The runs of some models, for a protocol and seeds."""
    note: str = ""
    """What a reader has to know about its numbers."""
    columns: tuple[TaskColumn, ...] = ()
    """If it trains networks."""
    row_titles: tuple[tuple[str, str], ...] = ()
    """The rows that are not models: name and title."""
    digits: int = 3
