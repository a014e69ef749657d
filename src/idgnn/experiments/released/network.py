"""The networks of the released code."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, global_add_pool

from idgnn.experiments.released.features import FREQUENCIES, LENGTH, return_features, scale_of, waves
from idgnn.experiments.released.operators import operator
from idgnn.layers.identity_conv import IdentityConv
from idgnn.models.idgnn import IDGNN
from idgnn.models.predictor import Predictor
from idgnn.models.prepared import Prepared
from idgnn.models.settings import Level
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
    """:class:`idgnn.IDGNN` with the layers, the pre-layer and the counts of the released code.

    Args:
        scale: Of the waves that the counts are turned into; `None` feeds them as they are.
        encoder: The settings of the :class:`idgnn.IDGNN`.
    """

    def __init__(self, scale: float | None, encoder: dict[str, Any]) -> None:
        super().__init__(**encoder)
        self.scale = scale
        width = encoder["hidden_channels"]
        self.lin_in = LinearNorm(self.lin_in.in_features, width)
        for conv in self.convs:
            assert isinstance(conv, IdentityConv)
            conv.operator = operator(encoder["conv"], width, self.identity == "full")

    def prepare(  # type: ignore[override]
        self,
        x: Tensor,
        edge_index: Tensor,
        *,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        queries: Tensor | None = None,
    ) -> Prepared:
        """As :meth:`idgnn.IDGNN.prepare`."""
        counts = None
        if self.identity == "fast":
            kept, size = self._planner.kept, x.size(0)
            counts = kept.get(edge_index, ("returns", size), lambda: return_features(edge_index, size))
            counts = counts if self.scale is None else waves(counts, self.scale)
        return super().prepare(
            x, edge_index, edge_attr=edge_attr, edge_weight=edge_weight, queries=queries, counts=counts
        )


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
    """A network of the released code; pairs are read by one linear layer, whether they are two nodes or one."""

    def __init__(self, level: Level, num_outputs: int, encoder: dict[str, Any], scale: float | None) -> None:
        super().__init__(level, num_outputs, encoder, pair_hidden=None)
        self.settings = {"level": level, "num_outputs": num_outputs, "encoder": encoder, "scale": scale}
        self.encoder = ReleasedEncoder(scale, encoder)
        if level == "graph":
            self.head = ReleasedGraphHead(encoder["hidden_channels"], num_outputs)


def build(settings: RunSettings, problem: Problem) -> ReleasedPredictor:
    """The network that the released code would train; its width is given, as the authors found it."""
    model, level = settings.model, problem.level
    if model.width is None or model.conv == "gine":
        raise ValueError(
            f"the model has conv={model.conv!r} and width={model.width}, expected gcn, sage, gat or gin and a width: "
            "the released code has widths and no budget. Take the settings from a table, protocol 'released'."
        )
    fast, graphs = model.identity == "fast", level == "graph"
    encoder = {
        "in_channels": problem.in_channels,
        "hidden_channels": model.width,
        "out_channels": None,
        "num_layers": model.num_layers(level),
        "conv": model.conv,
        "identity": model.identity,
        "cycle_length": LENGTH * 2 * FREQUENCIES if fast and graphs else LENGTH,
    }
    scale = None
    if fast and graphs:
        parts = (problem.train, *problem.held_out.values())
        scale = scale_of([return_features(part.edge_index, part.x.size(0)) for part in parts])
    return ReleasedPredictor(level, problem.objective.num_outputs, encoder, scale)
