r"""What the named layers have in common: two message functions and one round to run them on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

import torch
from torch import Tensor, nn

from idgnn.choices import Color
from idgnn.identity.schedule import Blocks, Exchange, Messages, Round, TakesBlocks
from idgnn.layers.aggregation import add_update, gather_sum, together
from idgnn.layers.linear import linear, linear_and_update, linear_by_color


class Operator(nn.Module, ABC):
    r"""One round of heterogeneous message passing (Eq. 3):

    .. math::
        \mathbf{m}_s^{(k)} &= \textsc{Msg}^{(k)}_{\mathbb{1}[s = v]}(\mathbf{h}_s^{(k-1)}) \\
        \mathbf{h}_u^{(k)} &= \textsc{Agg}^{(k)}(\{\mathbf{m}_s^{(k)}, s \in \mathcal{N}(u)\}, \mathbf{h}_u^{(k-1)})

    With `color="message"` only messages are colored, as in the paper: the state that a node brings to
    :math:`\textsc{Agg}` itself is not. With `color="message+update"` the colored row adds
    :math:`\mathbf{W}_c \mathbf{h}_v` to the linear map of its own state that :math:`\textsc{Agg}` has, or in place of
    none; :math:`\mathbf{W}_c = \mathbf{0}` at first. Messages alone do not tell a node from its twins. With `colors=2`
    there are third weights, for messages and updates of rows of the second color.
    """

    update_colored: nn.Parameter | None
    r""":math:`\mathbf{W}_c` `[channels, in_channels]`, if the update is colored."""
    update_second: nn.Parameter | None
    """The same for the second color."""

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

    @property
    def takes_blocks(self) -> TakesBlocks | None:
        """Which rows may receive aggregates of blocks of messages (:mod:`idgnn.identity.blocks`), if any may."""
        return None

    def block_values(self, x: Tensor, blocks: Blocks) -> tuple[Tensor, ...]:
        """The aggregates of blocks of plain messages, from the states of plain rows: each `[blocks, ...]`."""
        raise NotImplementedError(f"{type(self).__name__} takes no blocks.")

    def edge_values(
        self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, dtype: torch.dtype
    ) -> Tensor | None:
        """Weights of the messages over each edge of the original graph and, behind them, over each self-loop."""
        return None

    def make_update(self, color: Color, colors: int, in_channels: int, channels: int) -> None:
        r"""Makes :math:`\mathbf{W}_c`, zero, for each color if updates are to be colored."""
        if color not in get_args(Color):
            raise ValueError(f"color is {color!r}, expected one of {', '.join(map(repr, get_args(Color)))}.")
        made = colors if color == "message+update" else 0
        self.update_colored = nn.Parameter(torch.zeros(channels, in_channels)) if made else None
        self.update_second = nn.Parameter(torch.zeros(channels, in_channels)) if made == 2 else None

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draws new weights; those of colored updates are zero again."""
        for update in (self.update_colored, self.update_second):
            if update is not None:
                nn.init.zeros_(update)

    def of_colored(self, colored: Tensor, round_: Round, of: Callable[[Tensor, int], Tensor]) -> Tensor:
        """What `of(states, color)` makes of the states of the colored sources, color by color."""
        if round_.second is None:
            return of(colored, 1)
        return torch.cat([of(x, color) for color, x in enumerate(colored.split(round_.num_of_color), 1)])

    def update_weights(self, round_: Round) -> list[Tensor]:
        r""":math:`\mathbf{W}_c` of each color; none if updates are not colored, or no row of the round is."""
        if self.update_colored is None or round_.num_sources == round_.split or not round_.num_targets:
            return []
        if round_.second is None:
            return [self.update_colored]
        assert self.update_second is not None
        return [self.update_colored, self.update_second]

    def by_color(
        self, x: Tensor, round_: Round, weights: Sequence[Tensor], biases: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Linear maps of all sources, by their color, and the updates of the colored ones, if there are any."""
        sizes, updates = [round_.split, *round_.num_of_color], self.update_weights(round_)
        if updates:
            return linear_and_update(x, sizes, weights, updates, biases)
        return linear_by_color(x, sizes, weights, biases), None

    def update_of(self, colored: Tensor, round_: Round) -> Tensor | None:
        r""":math:`\mathbf{W}_c \mathbf{h}_v` from the states of the colored sources; `None` if there are no updates."""
        updates = self.update_weights(round_)
        return linear_by_color(colored, round_.num_of_color, updates) if updates else None

    @abstractmethod
    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """`[sources, in_channels]` to `[targets, out_channels]`; `weight` and `edge_attr` per original edge."""


@dataclass(frozen=True)
class PlainRound:
    """A round of a layer that sums, on plain rows alone: what rows with states of their own take over from it."""

    states: Tensor  # [plain rows, in_channels]
    sent: Tensor | None  # [plain rows, channels] the message of each; not needed if messages are linear
    total: Tensor  # [bases, channels] the sum of the messages into each
    total_with_own: Tensor | None = None  # [bases, channels] the same and the own state, where that was kept


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
    def message(self, x: Tensor, color: int) -> Tensor:
        """What rows of a color, 0 if they have none, send: `[rows, in_channels]` to `[rows, channels]`."""

    @abstractmethod
    def combine(self, total: Tensor, x: Tensor, round_: Round) -> Tensor:
        """The result, from sums `[targets, channels]` and the states of the sources `[sources, in_channels]`."""

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        if round_.exchange is not None:
            plain, *own = round_.exchange.split(x, round_)
            return self.exchanged(self.plain_round(plain, round_.plain, weight), x, own, round_, weight)
        return self.direct(x, round_, weight)

    def direct(self, x: Tensor, round_: Round, weight: Tensor | None) -> Tensor:
        """One round in which every target receives all of its messages."""
        sent, update = self.messages(x, round_)
        return self.conclude(gather_sum(sent, together(round_), edge_weight=weight), x, update, round_)

    @abstractmethod
    def messages(self, x: Tensor, round_: Round) -> tuple[Tensor, Tensor | None]:
        """What all sources send, `[sources, in_channels]` to `[sources, channels]`, and the updates of colored ones."""

    def conclude(self, total: Tensor, x: Tensor, update: Tensor | None, round_: Round) -> Tensor:
        """The result, with the updates of colored targets."""
        out = self.combine(total, x, round_)
        return out if update is None else add_update(out, update, round_)

    def plain_round(self, x: Tensor, messages: Messages, weight: Tensor | None) -> PlainRound:
        """Messages and sums of plain rows."""
        sent = self.message(x, 0)
        return PlainRound(x, sent, gather_sum(sent, messages, edge_weight=weight))

    def exchanged(
        self, plain: PlainRound, x: Tensor, own_states: Sequence[Tensor], round_: Round, weight: Tensor | None
    ) -> Tensor:
        """One round in which targets take over a plain sum and exchange the messages that differ.

        `own_states` are the sources `x` that are not plain, and of these the colored ones, as
        :meth:`idgnn.identity.schedule.Exchange.split` gives them: split once, because each slice has a gradient of the
        full size.
        """
        (own, colored), exchange = own_states, round_.exchange
        assert exchange is not None and plain.sent is not None
        twin, colored_twin = exchange.twin.split([own.size(0), colored.size(0)])
        change = self.of_colored(colored, round_, self.message) - plain.sent.index_select(0, colored_twin)
        base = plain.total.index_select(0, exchange.base)
        total = gather_sum(change, round_.colored, edge_weight=weight, base=base)
        if exchange.changes.source.numel():
            change = _minus_rows(self.message(own, 0), plain.sent, twin)
            total = gather_sum(change, exchange.changes, edge_weight=weight, base=total)
        return self.conclude(total, x, self.update_of(colored, round_), round_)


class LinearSumOperator(SumOperator):
    r"""A layer whose messages are linear in the states, with weights :math:`\mathbf{W}_0` and :math:`\mathbf{W}_1`.

    The difference of messages is then the message of a difference, and one product serves all that a target sums up:

    .. math::
        \sum_s w_{su}\, m(s|v) = \sum_s w_{su}\, m(s)
            + \mathbf{W}_0 \sum_{s \ne v} w_{su} (\mathbf{h}_{s|v} - \mathbf{h}_s)
            + w_{vu} (\mathbf{W}_1 \mathbf{h}_{v|v} - \mathbf{W}_0 \mathbf{h}_v)
    """

    @abstractmethod
    def weight_of(self, color: int) -> Tensor:
        r""":math:`\mathbf{W}_0`, or :math:`\mathbf{W}_1` of the first color, ...: `[channels, in_channels]`."""

    @property
    def own_weight(self) -> float:
        r"""The weight with which :math:`\mathbf{W}_0 \mathbf{h}_u` itself is part of the sum."""
        return 0.0

    @abstractmethod
    def finish(self, total: Tensor) -> Tensor:
        """The result, from sums that have the own state in them."""

    def message(self, x: Tensor, color: int) -> Tensor:
        """`W h`."""
        return linear(x, self.weight_of(color))

    def messages(self, x: Tensor, round_: Round) -> tuple[Tensor, Tensor | None]:
        """`W h` of all sources."""
        return self.by_color(x, round_, [self.weight_of(color) for color in range(1 + len(round_.num_of_color))])

    def colored_messages(self, colored: Tensor, round_: Round) -> tuple[Tensor, Tensor | None]:
        """`W h` of the colored sources, and their updates."""
        sizes, updates = round_.num_of_color, self.update_weights(round_)
        weights = [self.weight_of(color) for color in range(1, 1 + len(sizes))]
        if updates:
            return linear_and_update(colored, sizes, weights, updates)
        return linear_by_color(colored, sizes, weights), None

    def combine(self, total: Tensor, x: Tensor, round_: Round) -> Tensor:
        """Adds the own state."""
        if self.own_weight:
            own = self.message(round_.own_states(x), 0)
            total = torch.add(total, own, alpha=self.own_weight)
        return self.finish(total)

    def conclude(self, total: Tensor, x: Tensor, update: Tensor | None, round_: Round) -> Tensor:
        """The result; the update is part of the sum."""
        return self.combine(total if update is None else add_update(total, update, round_), x, round_)

    def plain_round(self, x: Tensor, messages: Messages, weight: Tensor | None) -> PlainRound:
        """Sums of plain rows; their messages are not needed again."""
        return PlainRound(x, None, gather_sum(self.message(x, 0), messages, edge_weight=weight))

    def exchanged(
        self, plain: PlainRound, x: Tensor, own_states: Sequence[Tensor], round_: Round, weight: Tensor | None
    ) -> Tensor:
        """One round in which targets take over a plain sum and exchange the messages that differ.

        `own_states` are the sources `x` that are not plain, and of these the colored ones, as
        :meth:`idgnn.identity.schedule.Exchange.split` gives them: split once, because each slice has a gradient of the
        full size.
        """
        (own, colored), exchange = own_states, round_.exchange
        assert exchange is not None
        states = plain.states.index_select(0, exchange.twin[own.size(0) :])
        sent, update = self.colored_messages(colored, round_)
        change = sent - self.message(states, 0)
        if self.own_weight and exchange.arrived.numel() < round_.num_targets:
            return self._with_plain_own_states(plain, x, own, round_, exchange, weight, change, update)
        base = plain.total.index_select(0, exchange.base)
        total = gather_sum(change, round_.colored, edge_weight=weight, base=base)
        total = total if update is None else add_update(total, update, round_)
        if exchange.changes.source.numel() == 0:
            return self.combine(total, x, round_)
        change = _minus_rows(own, plain.states, exchange.twin[: own.size(0)])
        change = gather_sum(change, exchange.changes, edge_weight=weight)
        if self.own_weight:
            change = torch.add(change, round_.own_states(x), alpha=self.own_weight)
        return self.finish(torch.addmm(total, change, self.weight_of(0).t()))

    def _with_plain_own_states(
        self,
        plain: PlainRound,
        x: Tensor,
        own: Tensor,
        round_: Round,
        exchange: Exchange,
        weight: Tensor | None,
        change: Tensor,
        update: Tensor | None,
    ) -> Tensor:
        """:meth:`exchanged` where few targets have a state of their own yet: plain own states are part of the base."""
        arrived, sums = exchange.arrived, plain.total_with_own
        if sums is None:
            assert exchange.base_row is not None
            before = self.message(plain.states.index_select(0, exchange.base_row), 0)
            sums = torch.add(plain.total, before, alpha=self.own_weight)
        base = sums.index_select(0, exchange.base)
        total = gather_sum(change, round_.colored, edge_weight=weight, base=base)
        total = total if update is None else add_update(total, update, round_)
        if exchange.changes.source.numel():
            change = _minus_rows(own, plain.states, exchange.twin[: own.size(0)])
            total = gather_sum(self.message(change, 0), exchange.changes, edge_weight=weight, base=total)
        row = round_.previous.index_select(0, arrived)
        plain_row = exchange.twin.index_select(0, row - exchange.num_plain)
        change = self.message(x.index_select(0, row) - plain.states.index_select(0, plain_row), 0)
        return self.finish(total.index_add_(0, arrived, change, alpha=self.own_weight))


def _minus_rows(x: Tensor, table: Tensor, row: Tensor) -> Tensor:
    """`x - table[row]`. Where many rows share those of a table, the table is negated first, forward and backward."""
    if row.numel() < table.size(0):
        return x - table.index_select(0, row)
    return x + table.neg().index_select(0, row)
