r"""What the named layers have in common: two message functions and one round to run them on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from idgnn.identity.schedule import Exchange, Messages, Round
from idgnn.layers.aggregation import gather_sum


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
    options: ClassVar[tuple[str, ...]] = ()
    """The options of :class:`idgnn.IdentityConv` that this layer takes: `aggr`, `heads`, `edge_dim`."""

    @property
    def sums(self) -> bool:
        """Whether it sums what :meth:`SumOperator.message` gives, so that rows may exchange messages."""
        return False

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


@dataclass(frozen=True)
class PlainRound:
    """A round of a layer that sums, on plain rows alone: what rows with states of their own take over from it."""

    states: Tensor  # [plain rows, in_channels]
    sent: Tensor  # [plain rows, channels] the message of each
    total: Tensor  # [bases, channels] the sum of the messages into each


class SumOperator(Operator):
    r"""A layer that sums what its neighbors send, in two functions:

    .. math::
        \mathbf{h}_u' = \textsc{Combine}\Big(\sum_{s} w_{su}\, \textsc{Msg}(\mathbf{h}_s),\ \mathbf{h}_u\Big)

    Then rows with a state of their own need not sum over all messages again: see
    :class:`idgnn.identity.schedule.Exchange`.
    """

    @property
    def sums(self) -> bool:
        """Unless it is made to do something else, it does."""
        return True

    @abstractmethod
    def message(self, x: Tensor, colored: bool) -> Tensor:
        """What rows send: `[rows, in_channels]` to `[rows, channels]`."""

    linear: ClassVar[bool] = False
    """Whether messages are linear in the states, so that sums of states may be transformed in place of states."""

    @abstractmethod
    def combine(self, total: Tensor, x: Tensor, round_: Round) -> Tensor:
        """The result, from sums `[targets, channels]` and the states of the sources `[sources, in_channels]`."""

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        if round_.exchange is not None:
            plain = self.plain_round(x[: round_.exchange.num_plain], round_.plain, weight)
            return self.exchanged(plain, x, round_, round_.exchange, weight)
        return self.direct(x, round_, weight)

    def direct(self, x: Tensor, round_: Round, weight: Tensor | None) -> Tensor:
        """One round in which every target receives all of its messages."""
        plain, colored = round_.split_by_color(x)
        total = gather_sum(self.message(plain, False), round_.plain, edge_weight=weight)
        if round_.has_color:
            total = gather_sum(self.message(colored, True), round_.colored, edge_weight=weight, base=total)
        return self.combine(total, x, round_)

    def plain_round(self, x: Tensor, messages: Messages, weight: Tensor | None) -> PlainRound:
        """Messages and sums of plain rows."""
        sent = self.message(x, False)
        return PlainRound(x, sent, gather_sum(sent, messages, edge_weight=weight))

    def exchanged(
        self, plain: PlainRound, x: Tensor, round_: Round, exchange: Exchange, weight: Tensor | None
    ) -> Tensor:
        """One round in which targets take over a plain sum and exchange the messages that differ."""
        _, own, colored = x.split(
            [exchange.num_plain, round_.split - exchange.num_plain, round_.num_sources - round_.split]
        )
        twin, colored_twin = exchange.twin.split([own.size(0), colored.size(0)])
        total = plain.total.index_select(0, exchange.base)
        if self.linear and round_.num_targets < own.size(0):
            change = own - plain.states.index_select(0, twin)
            total = total + self.message(gather_sum(change, exchange.changes, edge_weight=weight), False)
        elif exchange.changes.source.numel():
            change = self.message(own, False) - plain.sent.index_select(0, twin)
            total = gather_sum(change, exchange.changes, edge_weight=weight, base=total)
        if round_.has_color:
            change = self.message(colored, True) - plain.sent.index_select(0, colored_twin)
            total = gather_sum(change, round_.colored, edge_weight=weight, base=total)
        return self.combine(total, x, round_)
