"""One layer of ID-GNN-Full by name."""

from __future__ import annotations

from torch import Tensor, nn

from idgnn.choices import Activation, Aggregation, Color, ConvName, check_activation, check_num_colors
from idgnn.identity.checks import check_colored, check_dtype, check_edge_index, check_edge_rows, check_states
from idgnn.identity.row_graph import RowGraph, whole
from idgnn.layers.gat import IdentityGAT
from idgnn.layers.gcn import IdentityGCN
from idgnn.layers.gin import IdentityGIN, IdentityGINE
from idgnn.layers.operator import Operator
from idgnn.layers.sage import IdentitySAGE

OPERATORS: dict[ConvName, type[Operator]] = {
    "gcn": IdentityGCN,
    "sage": IdentitySAGE,
    "gat": IdentityGAT,
    "gin": IdentityGIN,
    "gine": IdentityGINE,
}


class IdentityConv(nn.Module):
    r"""One round of heterogeneous message passing (Eq. 3): the messages of colored rows have weights of their own.

    Args:
        conv: `"gcn"`, `"sage"`, `"gat"`, `"gin"`, or `"gine"` for edge features.
        in_channels: Width of the input.
        out_channels: Width of the output.
        identity: `False` gives the plain layer, with one set of weights.
        colors: With 2, rows may have one of two colors, each with weights of its own.
        color: What has second weights: `"message"`, as in Eq. 3, or `"message+update"`, also what a colored row keeps
            of its own state, so that it differs from its twins. Those of the update are zero at first.
        bias: Whether the result has a bias; leave it out under a BatchNorm, which cancels it.
        aggr: How `"sage"` aggregates: `"max"` (Eq. 2 of the paper), `"mean"` or `"sum"`.
        heads: Attention heads of `"gat"`; they share `out_channels`.
        edge_dim: Number of edge features of `"gine"`.
        act: The nonlinearity inside the MLP of `"gin"` and `"gine"`: `"relu"`, `"gelu"` or `"silu"`.

    Example:
        >>> import torch
        >>> layer = IdentityConv("gcn", 3, 8)
        >>> x, edge_index = torch.randn(2, 3), torch.tensor([[0, 1], [1, 0]])
        >>> layer(x, edge_index, colored=torch.tensor([True, False])).shape
        torch.Size([2, 8])
        >>> layer = IdentityConv("gcn", 3, 8, colors=2)
        >>> layer(x, edge_index, colored=torch.tensor([1, 2])).shape  # the color of each row, 0 for none
        torch.Size([2, 8])
    """

    operator: Operator

    def __init__(
        self,
        conv: ConvName,
        in_channels: int,
        out_channels: int,
        *,
        identity: bool = True,
        colors: int = 1,
        color: Color = "message",
        bias: bool = True,
        aggr: Aggregation = "max",
        heads: int = 1,
        edge_dim: int | None = None,
        act: Activation = "relu",
    ) -> None:
        super().__init__()
        self.conv, self.in_channels, self.out_channels, self.edge_dim = conv, in_channels, out_channels, edge_dim
        if conv not in OPERATORS:
            raise ValueError(
                f"conv is {conv!r}, expected one of {', '.join(OPERATORS)}. "
                "Any other PyG layer becomes identity-aware with idgnn.identity_aware(layer)."
            )
        check_num_colors(colors)
        check_activation(act)
        self.colors = colors if identity else 0
        options = {"aggr": aggr, "heads": heads, "edge_dim": edge_dim, "act": act}
        taken = {name: options[name] for name in OPERATORS[conv].options} | {"color": color}
        self.operator = OPERATORS[conv](in_channels, out_channels, self.colors, bias, **taken)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        self.operator.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        *,
        colored: Tensor | None = None,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """`[num_nodes, in_channels]` to `[num_nodes, out_channels]`; `colored` is a bool per row, or its color."""
        check_states(x, self.in_channels, next(self.parameters()).dtype, "layer")
        num_nodes = x.size(0)
        check_edge_index(edge_index, num_nodes)
        self.check_edges(edge_index, edge_attr, edge_weight)
        if colored is not None:
            check_colored(colored, num_nodes, self.colors)
            colored = colored if self.colors == 2 else colored.bool()
        edge_index = edge_index.long()
        rows = RowGraph.of_nodes(edge_index, num_nodes, colored)
        schedule = whole(rows, 1, edge_index.size(1) if self.operator.self_loops else None)
        weight = self.operator.edge_values(edge_index, num_nodes, edge_weight, x.dtype)
        return self.operator(x[schedule.node], schedule.rounds[0], weight, edge_attr)[schedule.answer]

    def check_edges(self, edge_index: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None) -> None:
        """Refuses edge attributes or weights that do not fit the edges, or that this layer has no use for."""
        for name, values, taken in (
            ("edge_weight", edge_weight, self.operator.takes_edge_weight),
            ("edge_attr", edge_attr, self.operator.takes_edge_attr),
        ):
            if values is None:
                continue
            if not taken:
                raise ValueError(f"the layer {self.conv!r} has no use for {name}. Leave it out, or use another layer.")
            check_edge_rows(values, edge_index.size(1), name)
            check_dtype(values, name, next(self.parameters()).dtype, "layer")
        if edge_attr is not None and edge_attr.shape[1:] != (self.edge_dim,):
            raise ValueError(
                f"edge_attr has shape {list(edge_attr.shape)}, expected [num_edges, {self.edge_dim}]: the layer was "
                f"made with edge_dim={self.edge_dim}."
            )
        if self.operator.takes_edge_attr and edge_attr is None:
            raise ValueError(f"the layer {self.conv!r} needs edge_attr of shape [num_edges, edge_dim]; none was given.")
