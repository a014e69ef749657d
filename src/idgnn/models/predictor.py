"""An encoder and a head: from graphs to predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from idgnn.choices import Level
from idgnn.models.budget import match_budget, num_parameters
from idgnn.models.heads import GraphHead, NodeHead, PairHead
from idgnn.models.idgnn import IDGNN
from idgnn.models.prepared import Prepared
from idgnn.models.saving import Saved
from idgnn.models.settings import ModelSettings

_PAIR_HIDDEN = 256  # as in the paper


class Predictor(Saved):
    """A network that answers queries about nodes, pairs or graphs.

    Args:
        level: What is asked about.
        num_outputs: Numbers per answer.
        encoder: The settings of an :class:`idgnn.IDGNN` without a last linear layer.
        pair_hidden: Width of the hidden layer that reads two node embeddings side by side; a conditional embedding of
            ID-GNN-Full is read by one linear layer.
    """

    def __init__(
        self, level: Level, num_outputs: int, encoder: dict[str, Any], pair_hidden: int | None = _PAIR_HIDDEN
    ) -> None:
        super().__init__()
        self.settings = {"level": level, "num_outputs": num_outputs, "encoder": encoder, "pair_hidden": pair_hidden}
        self.level: Level = level
        self.encoder = IDGNN(**encoder)
        width = encoder["hidden_channels"]
        if level == "node":
            self.head: nn.Module = NodeHead(width, num_outputs)
        elif level == "pair":
            hidden = None if self.encoder.identity == "full" else pair_hidden
            self.head = PairHead(self.encoder.pair_channels, num_outputs, hidden)
        else:
            self.head = GraphHead(width, num_outputs)

    def forward(self, ready: Prepared, graph: Tensor, num_graphs: int) -> Tensor:
        """Answers to all queries `[queries, num_outputs]`, or for graphs `[num_graphs, num_outputs]`.

        Args:
            ready: What :meth:`idgnn.IDGNN.prepare` gave for the encoder.
            graph: The graph of each embedding `[queries]`.
            num_graphs: How many there are.
        """
        h = self.encoder.run(ready)
        return self.head(h, graph, num_graphs) if self.level == "graph" else self.head(h)


def make_predictor(
    settings: ModelSettings, level: Level, in_channels: int, num_outputs: int, edge_dim: int | None
) -> Predictor:
    """The network that settings ask for, with the width that its budget allows.

    Every network is counted with its own head. The budget is that of a plain GCN with the smallest head there is: for
    pairs the one linear layer of ID-GNN-Full, so that a network that reads pairs by an MLP is narrower for it.
    """

    def network(settings: ModelSettings, width: int) -> Predictor:
        return Predictor(level, num_outputs, _encoder(settings, level, in_channels, width, edge_dim))

    if settings.conv == "gine" and edge_dim is None:
        raise ValueError("gine reads edge features, but the graphs have none. Use gin, or give them features.")
    width = settings.width
    if width is None:
        plain = _encoder(replace(settings, conv="gcn", identity="none"), level, in_channels, settings.budget, None)
        with torch.device("meta"):
            target = num_parameters(Predictor("node" if level == "pair" else level, num_outputs, plain))
        step = settings.heads if settings.conv == "gat" else 1  # its heads share the width
        width = step * match_budget(lambda steps: network(settings, step * steps), target, tolerance=0.1)
    return network(settings, width)


def _encoder(
    settings: ModelSettings, level: Level, in_channels: int, width: int, edge_dim: int | None
) -> dict[str, Any]:
    return {
        "in_channels": in_channels,
        "hidden_channels": width,
        "out_channels": None,
        "num_layers": settings.num_layers(level),
        "conv": settings.conv,
        "identity": settings.identity,
        "cycle_length": settings.cycle_length,
        "cycle_scale": settings.cycle_scale,
        "aggr": settings.aggr,
        "heads": settings.heads,
        "edge_dim": edge_dim if settings.conv == "gine" else None,
    }
