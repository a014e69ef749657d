"""From embeddings to predictions, as the paper's experiments have it: small, and apart from the encoder."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from idgnn.choices import Activation, check_activation
from idgnn.layers.activation import MODULES


class NodeHead(nn.Linear):
    """Predicts from the embedding of a node: one linear layer, `[nodes, in_channels]` to `[nodes, out_channels]`."""


class PairHead(nn.Module):
    """Predicts from the embedding of a pair.

    Args:
        in_channels: Width of what the encoder gives for a pair, :attr:`idgnn.IDGNN.pair_channels`.
        out_channels: Number of predictions.
        hidden_channels: Width of the hidden layer. The paper reads two concatenated node embeddings through an MLP of
            256 hidden units; a conditional embedding of ID-GNN-Full needs one linear layer alone: `None`.
        act: The nonlinearity of the MLP.
    """

    def __init__(
        self, in_channels: int, out_channels: int, hidden_channels: int | None = 256, act: Activation = "relu"
    ) -> None:
        super().__init__()
        check_activation(act)
        if hidden_channels is None:
            self.mlp = nn.Sequential(nn.Linear(in_channels, out_channels))
        else:
            self.mlp = nn.Sequential(
                nn.Linear(in_channels, hidden_channels), MODULES[act](), nn.Linear(hidden_channels, out_channels)
            )

    def forward(self, pairs: Tensor) -> Tensor:
        """`[pairs, in_channels]` to `[pairs, out_channels]`."""
        return self.mlp(pairs)


class GraphHead(nn.Module):
    """Predicts from the sum of the node embeddings of a graph through a three-layer MLP.

    Args:
        in_channels: Width of the node embeddings.
        out_channels: Number of predictions.
        hidden_channels: Width of the two hidden layers; `None` means `in_channels`.
        act: The nonlinearity.
    """

    def __init__(
        self, in_channels: int, out_channels: int, hidden_channels: int | None = None, act: Activation = "relu"
    ) -> None:
        super().__init__()
        check_activation(act)
        hidden = in_channels if hidden_channels is None else hidden_channels
        self.mlp = nn.Sequential(
            nn.Linear(in_channels, hidden),
            MODULES[act](),
            nn.Linear(hidden, hidden),
            MODULES[act](),
            nn.Linear(hidden, out_channels),
        )

    def forward(self, x: Tensor, batch: Tensor | None, batch_size: int | None = None) -> Tensor:
        """`[nodes, in_channels]` and the graph of each node to `[graphs, out_channels]`."""
        return self.mlp(global_add_pool(x, batch, batch_size))
