"""The options of a network, each with its default in one place. Read by the command line, so it imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from idgnn.choices import (
    Activation,
    Aggregation,
    Color,
    ConvName,
    CycleScale,
    Identity,
    Level,
    PairHeadName,
    Pool,
    SecondNodesName,
    TwoColorOptions,
    check_choices,
    check_counts,
    check_num_colors,
)


@dataclass(frozen=True)
class LayerOptions:
    """What the settings of a run and the configuration of an encoder have in common."""

    conv: ConvName = "gcn"
    """The layer; gine reads edge features, gcn edge weights."""
    identity: Identity = "full"
    """ID-GNN-Full, ID-GNN-Fast (closed-walk counts as features), or the plain GNN."""
    color: Color = "message+update"
    """Second weights of the full version: for the messages of the colored node, or also for its own update."""
    colors: int = 1
    """Colored nodes of a query in the full version: the node that is read, or with 2 also a second node."""
    second: SecondNodesName = TwoColorOptions.second
    """Second nodes of a node if there are two colors: neighbors, a ball around it, or all that it is connected with."""
    radius: int = TwoColorOptions.radius
    """Radius of that ball."""
    pool: Pool = TwoColorOptions.pool
    """How the embeddings of a node are pooled over its second nodes, and those of a pair over its two ends."""
    with_self: bool = TwoColorOptions.with_self
    """Whether a node is also read under its own color alone beside those with second nodes."""
    aggr: Aggregation = "max"
    """Aggregation of sage."""
    heads: int = 1
    """Attention heads of gat."""
    cycle_length: int = 10
    """Number of closed-walk counts that the fast version adds to the features."""
    cycle_scale: CycleScale = "standardized"
    """Their scale: logarithms, standardized over the training graphs or not, counts, or return probabilities."""
    act: Activation = "relu"
    """The nonlinearity. Smooth ones learn exact quantities, such as counts, from fewer labels; relu is the paper's."""
    dropout: float = 0.0
    """Share of the hidden states that is set to zero in training, after the first layer and after each round."""
    residual: bool = False
    """Whether a round adds to the state that it starts from."""
    normalize: bool = True
    """Whether embeddings are scaled to length 1 before they are read: sums then become the same as means."""


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(LayerOptions):
    """All options of an :class:`idgnn.IDGNN`, as they are saved with its weights."""

    conv: Any = LayerOptions.conv
    """The layer by name, or a function `(in_channels, out_channels) -> layer`, which cannot be saved."""
    in_channels: int
    """Number of node features."""
    hidden_channels: int
    """Width of the network."""
    out_channels: int | None
    """Width of the embeddings; `None` leaves the last linear layer out."""
    num_layers: int = 3
    """Rounds of message passing."""
    edge_dim: int | None = None
    """Number of edge features of gine."""
    num_embeddings: int | None = None
    """Number of nodes with learned vectors: the only feature of a node is its number."""
    directed: bool = TwoColorOptions.directed
    """Whether two colors tell the pair (u, v) from (v, u)."""

    def as_dict(self) -> dict[str, Any]:
        """The options by name."""
        return _values(self, EncoderConfig)


@dataclass(frozen=True)
class ModelSettings(LayerOptions):
    """A network. Unless a width is given, it has as many parameters as a plain GCN of width `budget`."""

    layers: int | None = None
    """Rounds of message passing; unless given 3, and 5 for pairs of nodes."""
    width: int | None = None
    """Width of the network, in place of a budget."""
    budget: int = 256
    """Width of the plain GCN whose number of parameters is matched."""
    pair_head: PairHeadName = "mlp"
    """How pairs are read: by an MLP, or as in the paper, by one linear layer in the full version."""
    symmetric: bool | None = None
    """Read pairs in both directions and take the mean; unless given, for links that have no direction."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_dropout(self.dropout)
        names = ("layers", "width", "budget", "heads", "cycle_length", "radius")
        check_counts(self, tuple(name for name in names if getattr(self, name) is not None))
        check_num_colors(self.colors, self.identity)
        TwoColorOptions(self.second, self.radius, self.pool, self.with_self).check_used(self.colors)

    def num_layers(self, level: Level) -> int:
        """Rounds of message passing for a task of this level, as the paper has them."""
        return self.layers if self.layers is not None else 5 if level == "pair" else EncoderConfig.num_layers

    def plain_gcn(self) -> ModelSettings:
        """The plain GCN that a budget is counted with."""
        return replace(
            self,
            conv="gcn",
            identity="none",
            colors=1,
            second=TwoColorOptions.second,
            radius=TwoColorOptions.radius,
            pool=TwoColorOptions.pool,
            with_self=TwoColorOptions.with_self,
        )

    def encoder(
        self,
        level: Level,
        in_channels: int,
        width: int,
        edge_dim: int | None,
        directed: bool = False,
        num_embeddings: int | None = None,
    ) -> EncoderConfig:
        """The encoder of this width for a task of this level, on graphs with `edge_dim` edge features, if any.

        `directed` says whether two colors tell the two directions of a pair apart, `num_embeddings` how many nodes have
        learned vectors.
        """
        return EncoderConfig(
            **_values(self, LayerOptions),
            in_channels=in_channels,
            hidden_channels=width,
            out_channels=None,
            num_layers=self.num_layers(level),
            edge_dim=edge_dim if self.conv == "gine" else None,
            num_embeddings=num_embeddings,
            directed=directed and self.colors == 2,
        )


def check_dropout(dropout: float) -> None:
    """Refuses a share that is not from 0 up to, but not including, 1."""
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout!r}, expected a share from 0 to below 1, for example 0.2.")


def _values(options: LayerOptions, kind: type[LayerOptions]) -> dict[str, Any]:
    """The fields of a class by name."""
    return {each.name: getattr(options, each.name) for each in fields(kind)}
