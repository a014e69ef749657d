"""How many parameters a network for pairs may have."""

from __future__ import annotations

from dataclasses import replace

import torch

from idgnn.models.budget import num_parameters
from idgnn.models.predictor import build
from idgnn.models.settings import ModelSettings


def pair_budget(settings: ModelSettings, in_channels: int, num_outputs: int) -> int:
    """As many as :func:`idgnn.models.predictor.build` gives all others: a plain GCN with one linear layer as a head."""
    layers = settings.num_layers("pair")
    gcn = replace(settings, conv="gcn", identity="none", width=settings.budget, layers=layers)
    with torch.device("meta"):
        return num_parameters(build(gcn, "node", in_channels, num_outputs, None))
