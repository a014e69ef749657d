"""The options of `idgnn train` whose defaults depend on the data: `None` if they were not given."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from idgnn.choices import Identity
from idgnn.models.settings import ModelSettings
from idgnn.training.run_settings import TrainOptions


@dataclass(frozen=True)
class NetworkOptions(ModelSettings):
    """A network. Unless a width is given, it has as many parameters as a plain GCN of width `budget`."""

    identity: Identity | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """ID-GNN-Full, ID-GNN-Fast (closed-walk counts as features), or the plain GNN; unless given full, but fast for
    nodes and graphs if a timed step of full takes too long, and always full with --tables."""
    layers: int | None = None
    """Rounds of message passing; unless given 3, for pairs of nodes the deepest of 5, 4, 3 and 2 that a timed step
    allows, and 4 with --tables."""

    def __post_init__(self) -> None:
        if self.identity is None and self.colors == 2:  # only the full version has colors
            object.__setattr__(self, "identity", "full")
        super().__post_init__()

    def settings(self, identity: Identity = ModelSettings.identity) -> ModelSettings:
        """As settings of a run, with this identity unless one was given."""
        return ModelSettings(**{**asdict(self), "identity": self.identity or identity})


@dataclass(frozen=True)
class LoopOptions(TrainOptions):
    """Adam on batches of graphs, or on snapshots of tables, whose networks learn in fewer epochs."""

    epochs: int | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """Passes over the training part; unless given 100, and 10 with --tables."""
    query_batch_size: int | None = None
    """Nodes or pairs in a batch, in place of graphs; unless given, chosen if there is a single graph. Halved when
    memory runs out."""
    lr: float | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """Initial learning rate; unless given 0.01, and 0.003 with --tables."""
    weight_decay: float | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """L2 penalty on all weights; unless given 0.0005, and none with --tables."""
    keep: Literal["last", "best"] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """The weights that the run ends with: those of the last epoch, or of the best one on the validation part; unless
    given the last, and the best with --tables."""

    def __post_init__(self) -> None:
        self.settings()  # which checks them

    def settings(self) -> TrainOptions:
        """As settings of a run on graphs."""
        return TrainOptions(**{name: value for name, value in asdict(self).items() if value is not None})

    def of_tables(self) -> dict[str, Any]:
        """What was given of the options of a run on tables."""
        given = {"epochs": self.epochs, "lr": self.lr, "weight_decay": self.weight_decay, "select": self.keep}
        return {name: value for name, value in given.items() if value is not None}
