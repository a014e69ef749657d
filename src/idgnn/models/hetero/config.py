"""The options of a :class:`idgnn.HeteroIDGNN`, each with its default in one place. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from idgnn.choices import (
    Aggregation,
    Color,
    CycleScale,
    EdgeTypeConv,
    EdgeTypeSum,
    Identity,
    check_choices,
    check_counts,
)
from idgnn.models.settings import check_dropout


@dataclass(frozen=True, kw_only=True)
class HeteroConfig:
    """A network over several node types.

    Example:
        >>> HeteroConfig(hidden_channels=64, num_layers=2, root="driver").aggr
        'mean'
    """

    hidden_channels: int
    """Width of the network."""
    out_channels: int | None = None
    """Width of the embeddings; `None` leaves the last linear layer out."""
    num_layers: int = 4
    """Rounds of message passing. A color has to arrive: at least the number of message steps in the schema from the
    colored type to the type that is read."""
    identity: Identity = "full"
    """`"full"`: heterogeneous message passing (Algorithm 1). `"fast"`: closed-walk counts, over all edge types, as
    features of all nodes. `"none"`: the plain GNN."""
    color: Color = "message+update"
    """What has second weights in `"full"`: messages of the colored node, as in Eq. 3, or also its own update; these are
    zero at first."""
    root: str | None = None
    """The node type that is colored: the edge types that start from it have second weights. `None`: all have."""
    conv: EdgeTypeConv = "linear"
    """The messages of an edge type: `"linear"`, a linear map of states, the fastest; or one of the operators of
    :class:`idgnn.IdentityConv` for each edge type. `"gine"` reads the edge features of the types that have some."""
    aggr: Aggregation = "mean"
    """How `"linear"` aggregates the messages of an edge type, by mean or sum, and how `"sage"` does, also by max."""
    heads: int = 1
    """Attention heads of `"gat"`."""
    combine: EdgeTypeSum = "sum"
    """How edge types are put together: by a sum, or by attention over those that arrive at a node."""
    residual: bool = True
    """Whether a round adds to the states before it."""
    dropout: float = 0.0
    """The share of states that is set to zero in training."""
    num_embeddings: Mapping[str, int] = field(default_factory=dict)
    """The number of nodes of the types that have a learned vector for each node."""
    cycle_length: int = 8
    """How many counts `"fast"` adds to the features."""
    cycle_scale: CycleScale = "log"
    """Their scale."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_dropout(self.dropout)
        widths = ("hidden_channels", "num_layers", "heads", "cycle_length")
        check_counts(self, (*widths, *(() if self.out_channels is None else ("out_channels",))))
        if self.cycle_scale == "standardized":
            raise ValueError("cycle_scale is 'standardized', expected 'log', 'counts' or 'walk' here.")
        if self.aggr == "max" and self.conv == "linear":
            raise ValueError(
                "aggr is 'max' and conv is 'linear', which has means and sums. Use conv='sage' for maxima."
            )

    @property
    def fused(self) -> bool:
        """Whether all edge types run together, by :class:`idgnn.models.hetero.layer.FusedLayer`."""
        return self.conv == "linear" and self.combine == "sum"

    def as_dict(self) -> dict[str, Any]:
        """The options by name."""
        return asdict(self)
