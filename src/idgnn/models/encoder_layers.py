"""The layer of each round of an encoder: an operator of ours, or any PyG layer made identity-aware."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from idgnn.choices import ConvName
from idgnn.layers.identity_conv import IdentityConv
from idgnn.models.foreign import find_widths
from idgnn.models.identity_aware import identity_aware
from idgnn.models.identity_aware_layer import IdentityAwareLayer
from idgnn.models.settings import EncoderConfig


def make_layer(config: EncoderConfig) -> nn.Module:
    """A new layer of the width of the network."""
    width, full = config.hidden_channels, config.identity == "full"
    conv: ConvName | Callable[[int, int], nn.Module] = config.conv
    if not callable(conv):
        return IdentityConv(
            conv,
            width,
            width,
            identity=full,
            colors=config.colors,
            color=config.color,
            bias=False,  # BatchNorm follows and cancels any bias
            aggr=config.aggr,
            act=config.act,
            heads=config.heads,
            edge_dim=config.edge_dim,
        )
    made = conv(width, width)
    if not full:
        return made
    aware = identity_aware(made, color=config.color, colors=config.colors)
    if isinstance(aware, IdentityAwareLayer):
        none = torch.empty(0, width)  # a layer that does not tell its width gets it here
        aware.color(none)
        for update in aware.color.updates:
            update(none, none)
    else:
        find_widths(aware, width)
    return aware
