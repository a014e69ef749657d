"""The networks of the code that the authors released (GraphGym), for the protocol `released`.

They differ from the paper's text in ways that change the numbers: the published numbers can only be reproduced with
them. Only :mod:`idgnn.experiments.execute` imports this module, :mod:`idgnn.experiments.released_layers` and
:mod:`idgnn.experiments.released_features`.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, global_add_pool

from idgnn.choices import Level
from idgnn.experiments.released_layers import released_operator
from idgnn.layers.identity_conv import IdentityConv
from idgnn.models.idgnn import IDGNN
from idgnn.models.predictor import Predictor
from idgnn.tasks.problem import Problem
from idgnn.training.settings import RunSettings


class LinearNorm(nn.Linear):
    """The pre-layer: a linear layer without bias, then BatchNorm. On constant features it amplifies rounding noise.

    Statistics are taken over the nodes of the batch; the released code has a row for each node of each ego network.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, bias=False)
        self.norm = BatchNorm(out_channels, allow_single_element=True)

    def forward(self, input: Tensor) -> Tensor:
        """`[rows, in_channels]` to `[rows, out_channels]`."""
        return self.norm(super().forward(input))


class ReleasedEncoder(IDGNN):
    """:class:`idgnn.IDGNN` with the layers and the pre-layer of the released code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        width = settings["hidden_channels"]
        self.lin_in = LinearNorm(settings["in_channels"], width)
        for conv in self.convs:
            assert isinstance(conv, IdentityConv)
            conv.operator = released_operator(settings["conv"], width, self.identity == "full")


class ReleasedGraphHead(nn.Module):
    """Sum pooling, then a three-layer MLP; like every hidden layer of the released code these have BatchNorm."""

    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        hidden = [(LinearNorm(channels, channels), nn.ReLU()) for _ in range(2)]
        self.mlp = nn.Sequential(*hidden[0], *hidden[1], nn.Linear(channels, out_channels))

    def forward(self, x: Tensor, batch: Tensor, batch_size: int) -> Tensor:
        """`[nodes, channels]` and the graph of each node to `[graphs, out_channels]`."""
        return self.mlp(global_add_pool(x, batch, batch_size))


class ReleasedPredictor(Predictor):
    """A network of the released code; pairs are read by one linear layer, whether they have two embeddings or one."""

    def __init__(self, level: Level, num_outputs: int, encoder: dict[str, Any]) -> None:
        super().__init__(level, num_outputs, encoder, pair_hidden=None)
        self.encoder = ReleasedEncoder(**encoder)
        if level == "graph":
            self.head = ReleasedGraphHead(encoder["hidden_channels"], num_outputs)


def build_released(settings: RunSettings, problem: Problem) -> ReleasedPredictor:
    """The network that the released code would train; its width is given, as the authors found it.

    ID-GNN-Fast is the plain network, on a problem with more features
    (:func:`idgnn.experiments.released_features.with_returns`).
    """
    model, level = settings.model, problem.level
    if model.width is None or model.conv == "gine":
        raise ValueError(
            f"the model has conv={model.conv!r} and width={model.width}, expected gcn, sage, gat or gin and a width: "
            "the released code gives widths, not budgets. Take the settings from a table, protocol 'released'."
        )
    encoder = {
        "in_channels": problem.in_channels,
        "hidden_channels": model.width,
        "out_channels": None,
        "num_layers": model.num_layers(level),
        "conv": model.conv,
        "identity": "full" if model.identity == "full" else "none",
    }
    return ReleasedPredictor(level, problem.objective.num_outputs, encoder)
