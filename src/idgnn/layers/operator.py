r"""What the named layers have in common: two message functions and one round to run them on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from idgnn.identity.rounds import Round


class Operator(nn.Module, ABC):
    r"""One round of heterogeneous message passing (Eq. 3):

    .. math::
        \mathbf{m}_s^{(k)} &= \textsc{Msg}^{(k)}_{\mathbb{1}[s = v]}(\mathbf{h}_s^{(k-1)}) \\
        \mathbf{h}_u^{(k)} &= \textsc{Agg}^{(k)}(\{\mathbf{m}_s^{(k)}, s \in \mathcal{N}(u)\}, \mathbf{h}_u^{(k-1)})

    Only messages are colored: the state that a node brings to :math:`\textsc{Agg}` itself never is.
    """

    self_loops: ClassVar[bool] = False
    """Whether every row also sends a message to itself. Such a message is a message, and may be colored."""
    takes_edge_weight: ClassVar[bool] = False
    takes_edge_attr: ClassVar[bool] = False

    def edge_values(
        self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, dtype: torch.dtype
    ) -> Tensor | None:
        """Weights of the messages over each edge of the original graph and, behind them, over each self-loop."""
        return None

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draws new weights."""

    @abstractmethod
    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """`[sources, in_channels]` to `[targets, out_channels]`; `weight` and `edge_attr` per original edge."""
