"""Checks layers that users make, which may not be what an identity graph is exact for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from idgnn.models.identity_aware import identity_aware
from idgnn.models.identity_aware_layer import IdentityAwareLayer
from idgnn.models.identity_aware_model import IdentityAwareModel


class Chain(nn.Module):
    """Layers one after the other, with a ReLU behind each."""

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """`[num_nodes, channels]` to the same."""
        edge = {"edge_attr": edge_attr, "edge_weight": edge_weight}
        given = {name: values for name, values in edge.items() if values is not None}
        for layer in self.layers:
            out = layer(x, edge_index, **given)
            if out.size(-1) != x.size(-1):
                raise ValueError(
                    f"conv made a layer of {out.size(-1)} columns where {x.size(-1)} were asked for. Of several heads "
                    "each may have a part: lambda i, o: GATv2Conv(i, o // 2, heads=2)."
                )
            x = out.relu()
        return x


def plain_layer(conv: nn.Module) -> nn.Module:
    """The layer as it was given, without colors."""
    return conv.module if isinstance(conv, (IdentityAwareLayer, IdentityAwareModel)) else conv


def find_widths(aware: IdentityAwareModel, channels: int) -> None:
    """Runs a model on two nodes, so that maps whose widths only a call tells have them before an optimizer is made.

    A model that takes more than states and edges finds them at its first call.
    """
    weight = next(aware.module.parameters(), torch.empty(0))
    x = torch.zeros(2, channels, dtype=weight.dtype, device=weight.device)
    both_ways, training = torch.tensor([[0, 1], [1, 0]], device=weight.device), aware.training
    with torch.no_grad(), contextlib.suppress(Exception):
        aware.eval().run_rows(x, both_ways, colored=torch.ones(2, dtype=torch.bool, device=weight.device))
    aware.train(training)


def check_exact(
    convs: Iterable[nn.Module], x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None
) -> None:
    """Refuses layers that an identity graph would not be exact for: those that look at more than their in-neighbors.

    :func:`idgnn.identity_aware` compares a model with brute force at its first call; here that is a copy of the chain.
    """
    chain = Chain(plain_layer(conv) for conv in convs)
    aware = identity_aware(chain)
    aware(x.detach(), edge_index, edge_attr=edge_attr, edge_weight=edge_weight)
    if aware.num_layers != len(chain.layers):
        raise ValueError(
            f"conv makes layers of {aware.num_layers} rounds of messages in all, expected {len(chain.layers)}, one for "
            "each. Let it make layers of one round, or make a whole model identity-aware: idgnn.identity_aware(model)."
        )
