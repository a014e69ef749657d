"""A small awkward graph, and brute force for models that `identity_aware` made."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from idgnn.models.identity_aware import identity_aware
from idgnn.models.identity_aware_model import IdentityAwareModel

NUM_NODES = 7
EDGES = torch.tensor([[0, 1, 2, 1, 2, 3, 3, 4, 0, 0, 2, 5, 4, 1], [1, 2, 0, 0, 3, 2, 4, 3, 3, 1, 2, 0, 4, 4]])
NOT_COLORED = torch.zeros(NUM_NODES, dtype=torch.bool)
PNA = {
    "aggregators": ["mean", "max", "std"],
    "scalers": ["identity", "amplification"],
    "deg": torch.bincount(torch.bincount(EDGES[1], minlength=NUM_NODES)),
}


class Mean(MessagePassing):
    """A layer as in the tutorials: no hints, `x` in its message and its update alike."""

    def __init__(self, channels: int) -> None:
        super().__init__(aggr="mean")
        self.lin = nn.Linear(2 * channels, channels)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_j, x_i):
        return torch.tanh(x_j - x_i)

    def update(self, inputs, x):
        return self.lin(torch.cat([inputs, x], dim=-1))


def features(channels: int = 4) -> Tensor:
    return torch.randn(NUM_NODES, channels)


def drawn(model: nn.Module, x: Tensor, *args: Any, colors: int = 1, **kwargs: Any) -> Any:
    """The identity-aware version of a model with color maps away from the identity, so that the color matters."""
    ours = identity_aware(model, colors=colors)
    assert isinstance(ours, IdentityAwareModel)
    ours(x, *args, **kwargs)  # maps of unknown width get theirs
    for weight in ours.colors.parameters():
        nn.init.normal_(weight)
    return ours


def one_copy_per_query(model: Any, pairs: Tensor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Brute force: for each pair the whole graph once more, with one node colored."""
    rows = []
    for node, color in pairs.t().tolist():
        rows.append(model(x, *args, colored=torch.arange(x.size(0)) == color, **kwargs)[node])
    return torch.stack(rows)


def assert_exact(model: nn.Module, x: Tensor, *args: Any, steps: int, **kwargs: Any) -> None:
    """Node and pair queries equal brute force, the color makes a difference, and without it all is as it was."""
    model.eval()
    plain = model(x, *args, **kwargs)
    ours = drawn(model, x, *args, **kwargs)
    assert ours.num_layers == steps
    every = torch.arange(x.size(0))
    found = ours(x, *args, **kwargs)
    assert (found - plain).abs().max() > 1e-3
    expected = one_copy_per_query(ours, torch.stack([every, every]), x, *args, **kwargs)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    pairs = torch.tensor([[0, 2, 4, 3, 1], [1, 0, 3, 2, 1]])
    found = ours(x, *args, queries=pairs, **kwargs)
    torch.testing.assert_close(found, one_copy_per_query(ours, pairs, x, *args, **kwargs), rtol=0, atol=1e-10)
    assert torch.equal(ours(x, *args, colored=torch.zeros(x.size(0), dtype=torch.bool), **kwargs), plain)
