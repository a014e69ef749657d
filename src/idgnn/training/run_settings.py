"""How a network is trained, and a whole run as one value. Read by the command line, so it imports no PyTorch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from idgnn.choices import Level, check_choices, check_counts, check_numbers
from idgnn.graphs.sources import PATHS, FileSource, Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings


@dataclass(frozen=True)
class TrainOptions:
    """Adam on batches of graphs. The defaults are those of the paper's experiments, with BatchNorm's statistics
    re-estimated."""

    epochs: int = 100
    """Passes over the training graphs."""
    batch_size: int = 128
    """Graphs in a batch; halved when memory runs out."""
    query_batch_size: int | None = None
    """Nodes or pairs in a batch, in place of graphs, for large graphs; halved when memory runs out."""
    fanout: tuple[int, ...] = ()
    """With query_batch_size: at most this many in-neighbors of a node in each hop (15 10 5); by default all."""
    workers: int = 0
    """With query_batch_size: number of processes that prepare batches in parallel with training."""
    lr: float = 0.01
    """Initial learning rate."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """Learning rate over the epochs: a cosine down to 0, or constant."""
    weight_decay: float = 5e-4
    """L2 penalty on all weights."""
    keep: Literal["last", "best"] = "last"
    """The weights that the run ends with: those of the last epoch, or of the best one on the validation part."""
    eval_every: int = 1
    """Epochs between two evaluations on the held-out parts; the last epoch is always evaluated."""
    reestimate_batchnorm: bool = True
    """Before each evaluation, average BatchNorm's statistics over training batches, at most 32 of them."""
    freeze_batchnorm: float = 0.0
    """Share of the epochs, the last ones, in which BatchNorm's statistics are fixed and not those of each batch: for
    exact quantities, such as counts, whose error the noise of small batches would limit."""
    device: str = "auto"
    """cpu, cuda, cuda:1; auto takes a GPU if there is one."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """Of matrix products: tf32 keeps 10 bits of each factor, on a GPU alone, bf16 (autocast) 7, of results too. In
    training and its evaluation; the trained network predicts and embeds in float32."""
    reshuffle_every: int = 1
    """Epochs between two assignments of the graphs to batches."""
    cuda_graphs: Literal["auto", "on", "off"] = "auto"
    """Record steps as CUDA graphs and replay them, several times faster; auto: on a GPU, if the network allows it."""
    compile: bool = False
    """Compile the network with torch.compile; the first epochs then take half a minute or more."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_counts(self, ("epochs", "batch_size", "eval_every", "reshuffle_every"))
        check_counts(self, ("workers",), least=0)
        check_numbers(self, ("lr", "weight_decay", "freeze_batchnorm"))
        self._check_query_batches()
        if not 0 <= self.freeze_batchnorm < 1:
            raise ValueError(
                f"freeze_batchnorm is {self.freeze_batchnorm}, expected a share of the epochs from 0 to below 1, for "
                "example 0.4: until then statistics have to be found."
            )
        if not self.lr > 0:
            raise ValueError(f"lr is {self.lr}, expected a learning rate above 0, for example 0.01.")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay is {self.weight_decay}, expected 0 or more.")

    def check_level(self, level: Level) -> None:
        """Refuses batches of nodes or pairs for a task about whole graphs."""
        if self.query_batch_size is not None and level == "graph":
            raise ValueError(
                f"query_batch_size is {self.query_batch_size}, the nodes or pairs in a batch, but the task asks about "
                "whole graphs. Leave it out: batch_size is the number of graphs."
            )

    def _check_query_batches(self) -> None:
        given = self.fanout if isinstance(self.fanout, tuple | list) else None
        if given is None or not all(type(most) is int and (most >= 1 or most == -1) for most in given):
            raise ValueError(
                f"fanout is {self.fanout if given is None else list(given)!r}, expected whole numbers of at least 1, "
                "or -1 for all: the most in-neighbors of a node in each hop, for example 15 10 5."
            )
        object.__setattr__(self, "fanout", tuple(given))  # a list if it was read from a file
        if self.query_batch_size is None:
            if self.fanout or self.workers:
                name = "fanout" if self.fanout else "workers"
                raise ValueError(f"{name} is for batches of nodes or pairs. Set query_batch_size, for example 512.")
            return
        check_counts(self, ("query_batch_size",))


@dataclass(frozen=True)
class RunSettings:
    """The data, the task, the network and the training of one run; as JSON in `run.json`."""

    data: str | FileSource
    """The name of a dataset, or files; `"python"` for graphs that were passed in Python."""
    task: TaskSettings
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainOptions = field(default_factory=TrainOptions)
    selection: Selection = field(default_factory=Selection)
    seed: int = 0
    own_network: str | None = None
    """The class of the network if it is a model of the user's own, in place of `model`."""
    reading: str = ""
    """How that model reads queries if it has two colors."""

    def __post_init__(self) -> None:
        self.training.check_level(self.task.level)  # before any graph is read

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for a JSON file."""
        values = asdict(self)
        if self.own_network is not None:
            values["model"] = None
        if isinstance(self.data, FileSource):
            values["data"] = {
                name: str(value) if isinstance(value, Path) else value for name, value in values["data"].items()
            }
        return values

    @staticmethod
    def from_dict(values: dict[str, Any]) -> RunSettings:
        """The settings that :meth:`as_dict` described, also after writing and reading JSON."""
        try:
            data, own_network = values["data"], values["own_network"]
            model = {} if own_network is not None else values["model"]
            return RunSettings(
                data if isinstance(data, str) else _file_source(data),
                TaskSettings(**_checked_names(TaskSettings, values["task"])),
                ModelSettings(**_checked_names(ModelSettings, model)),
                TrainOptions(**_checked_names(TrainOptions, values["training"])),
                Selection(**_checked_names(Selection, values["selection"])),
                values["seed"],
                own_network,
                values.get("reading", ""),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"the settings of the run are not complete: {error!r}. Start it again.") from None


def _file_source(values: dict[str, Any]) -> FileSource:
    paths = {name: None if values[name] is None else Path(values[name]) for name in PATHS}
    return FileSource(**{**_checked_names(FileSource, values), **paths})


def _checked_names(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """Refuses settings that this version does not have, rather than run without them."""
    unknown = set(values) - {each.name for each in fields(kind)}
    if unknown:
        raise ValueError(
            f"the run has settings {sorted(unknown)} that this version of idgnn does not know. Use the version that "
            "run.json names."
        )
    return values
