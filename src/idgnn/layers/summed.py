r"""The layers whose aggregation is a sum, taken apart: what is summed, and what is made of the sum.

:math:`\mathbf{h}_u' = \textsc{Combine}(\sum_s w_{su}\, \textsc{Msg}(\mathbf{h}_s), \mathbf{h}_u)`. Whoever knows the
sum over all messages can exchange some of them without looking at the others. The layers themselves say the same in
one piece, in whichever order is fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from idgnn.layers.gcn import IdentityGCN
from idgnn.layers.gin import IdentityGIN
from idgnn.layers.operator import Operator
from idgnn.layers.sage import IdentitySAGE


@dataclass(frozen=True)
class Summed:
    """A layer as a sum of messages."""

    message: Callable[[Tensor, bool], Tensor]
    """(states `[rows, in_channels]`, whether they are colored) to messages `[rows, out_channels]`."""
    combine: Callable[[Tensor, Tensor, Tensor], Tensor]
    """(sums `[rows, out_channels]`, states `[rows, in_channels]`, messages received `[rows]`) to the layer's result."""


def as_sum(operator: Operator) -> Summed | None:
    """The parts of a layer; `None` if it does not sum, or sums what differs from edge to edge."""
    # Exactly these: one that is derived from them may sum something else.
    if type(operator) is IdentityGCN:
        return _gcn(operator)
    if type(operator) is IdentityGIN:
        return _gin(operator)
    if type(operator) is IdentitySAGE and operator.aggr != "max":
        return _sage(operator)
    return None


def _gcn(layer: IdentityGCN) -> Summed:
    def message(x: Tensor, colored: bool) -> Tensor:
        return ((colored and layer.lin_colored) or layer.lin)(x)

    def combine(total: Tensor, x: Tensor, count: Tensor) -> Tensor:
        return total if layer.bias is None else total + layer.bias

    return Summed(message, combine)


def _gin(layer: IdentityGIN) -> Summed:
    def message(x: Tensor, colored: bool) -> Tensor:
        return linear(x, ((colored and layer.lin_colored) or layer.lin).weight)

    def combine(total: Tensor, x: Tensor, count: Tensor) -> Tensor:
        return layer.lin_out((total + layer.lin((1 + layer.eps) * x)).relu())

    return Summed(message, combine)


def _sage(layer: IdentitySAGE) -> Summed:
    def message(x: Tensor, colored: bool) -> Tensor:
        return ((colored and layer.lin_colored) or layer.lin)(x).relu()

    def combine(total: Tensor, x: Tensor, count: Tensor) -> Tensor:
        if layer.aggr == "mean":
            total = total / count.clamp(min=1).unsqueeze(-1)
        return layer.lin_out(torch.cat([total, x], dim=-1))

    return Summed(message, combine)
