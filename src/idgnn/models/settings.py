"""Which network; read by the command line, so it imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from idgnn.choices import Aggregation, ConvName, CycleScale, Identity, Level, check_choices, check_counts


@dataclass(frozen=True)
class ModelSettings:
    """A network. Unless a width is given, it has as many parameters as a plain GCN of width `budget`."""

    conv: ConvName = "gcn"
    """The layer; gine reads edge features, gcn edge weights."""
    identity: Identity = "full"
    """ID-GNN-Full, ID-GNN-Fast (closed-walk counts as features), or the plain GNN."""
    layers: int | None = None
    """Rounds of message passing; unless given 3, and 5 for pairs of nodes."""
    width: int | None = None
    """Width of the network, in place of a budget."""
    budget: int = 256
    """Width of the plain GCN whose number of parameters is matched."""
    aggr: Aggregation = "max"
    """Aggregation of sage."""
    heads: int = 1
    """Attention heads of gat."""
    cycle_length: int = 10
    """How many counts the fast version is fed with."""
    cycle_scale: CycleScale = "log"
    """Their scale: logarithm, the counts as they are, or return probabilities of the random walk."""

    def __post_init__(self) -> None:
        check_choices(self)
        names = ("layers", "width", "budget", "heads", "cycle_length")
        check_counts(self, tuple(name for name in names if getattr(self, name) is not None))

    def num_layers(self, level: Level) -> int:
        """Rounds of message passing for a task of this level, as the paper has them."""
        return self.layers if self.layers is not None else 5 if level == "pair" else 3
