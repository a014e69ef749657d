"""GIN and GINE with a message function for each color."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idgnn.choices import Activation, Color
from idgnn.identity.schedule import Messages, Round
from idgnn.layers.activation import activate
from idgnn.layers.aggregation import add_update, gather_sum
from idgnn.layers.linear import add_bias, linear
from idgnn.layers.operator import LinearSumOperator, Operator


class IdentityGIN(LinearSumOperator):
    r"""The layer of Xu et al. (2019) with colored messages.

    GIN sums the states of the neighbors and applies a two-layer MLP. The first layer of that MLP is linear and may as
    well act on the summands, which makes it the message function; a colored message has weights of its own:

    .. math::
        \mathbf{h}_u' = \mathbf{V}\, \textsc{ReLU}\Big(\mathbf{W}_0 (1 + \epsilon)\, \mathbf{h}_u
            + \sum_{s \in \mathcal{N}(u)} \mathbf{W}_{\mathbb{1}[s = v]} \mathbf{h}_s + \mathbf{b}\Big) + \mathbf{c}

    and :math:`\mathbf{W}_c \mathbf{h}_v` more inside the ReLU for the colored row itself if its update is colored.
    `act` may name another nonlinearity.
    """

    options = ("act",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        colors: int = 1,
        bias: bool = True,
        eps: float = 0.0,
        color: Color = "message",
        act: Activation = "relu",
    ) -> None:
        super().__init__()
        self.eps = eps
        self.act: Activation = act
        self.lin = nn.Linear(in_channels, out_channels)
        self.lin_colored = nn.Linear(in_channels, out_channels, bias=False) if colors else None
        self.lin_second = nn.Linear(in_channels, out_channels, bias=False) if colors == 2 else None
        self.lin_out = nn.Linear(out_channels, out_channels, bias=bias)
        self.make_update(color, colors, in_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        super().reset_parameters()
        for lin in filter(None, (self.lin, self.lin_colored, self.lin_second, self.lin_out)):
            lin.reset_parameters()

    @property
    def own_weight(self) -> float:
        """`1 + eps`."""
        return 1 + self.eps

    def weight_of(self, color: int) -> Tensor:
        """`W`."""
        return ((self.lin, self.lin_colored, self.lin_second)[color] or self.lin).weight

    def finish(self, total: Tensor) -> Tensor:
        """The rest of the MLP."""
        return linear(activate(total + self.lin.bias, self.act, overwrite=True), self.lin_out.weight, self.lin_out.bias)

    def direct(self, x: Tensor, round_: Round, weight: Tensor | None) -> Tensor:
        """As every layer that sums; but W may act on sums or on summands, is applied to whichever are fewer,
        and once to a target's own state and its sum together."""
        if round_.num_targets <= round_.num_sources:
            out = linear(self._sum_with_own(x, round_), self.lin.weight, self.lin.bias)
        else:
            out = add_bias(self._sum_with_own(self.message(x, 0), round_), self.lin.bias)
        if round_.has_color:
            sent, update = self.colored_messages(x[round_.split :], round_)
            out = gather_sum(sent, round_.colored, base=out)
        else:
            update = self.update_of(x[round_.split :], round_) if self.update_colored is not None else None
        out = out if update is None else add_update(out, update, round_)
        return linear(activate(out, self.act), self.lin_out.weight, self.lin_out.bias)

    def _sum_with_own(self, x: Tensor, round_: Round) -> Tensor:
        """The sum of plain messages and, with its weight, the row of each target itself."""
        if round_.in_order and self.own_weight == 1:
            return gather_sum(x, round_.plain, base=x)
        return gather_sum(x, round_.plain, own=round_.previous, own_weight=self.own_weight)


class IdentityGINE(Operator):
    r"""GIN with edge features (Hu et al., 2020) and colored messages, the edge-feature version of Eq. 3:

    .. math::
        \mathbf{m}_{su} &= \textsc{ReLU}(\mathbf{W}_{\mathbb{1}[s = v]} \mathbf{h}_s
            + \mathbf{E}_{\mathbb{1}[s = v]} \mathbf{f}_{su}), \qquad \mathbf{W}_0 = \mathbf{I} \\
        \mathbf{h}_u' &= \textsc{Mlp}\Big((1 + \epsilon)\, \mathbf{h}_u
            + \sum_{s \in \mathcal{N}(u)} \mathbf{m}_{su}\Big)

    GINE adds states to edge features as they are, so the plain message has no weight on the state; the colored one
    starts from the identity matrix too. If its update is colored, the colored row adds
    :math:`\mathbf{W}_c \mathbf{h}_v` to what the MLP is given. `act` is the nonlinearity inside the MLP; that of
    messages is always ReLU.
    """

    takes_edge_attr = True
    options = ("edge_dim", "act")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        colors: int = 1,
        bias: bool = True,
        eps: float = 0.0,
        edge_dim: int | None = None,
        color: Color = "message",
        act: Activation = "relu",
    ) -> None:
        super().__init__()
        if edge_dim is None:
            raise ValueError("the layer 'gine' needs edge_dim, the number of edge features. For none, use 'gin'.")
        self.eps = eps
        self.act: Activation = act
        self.lin_edge = nn.Linear(edge_dim, in_channels)
        self.lin_edge_colored = nn.Linear(edge_dim, in_channels) if colors else None
        self.lin_edge_second = nn.Linear(edge_dim, in_channels) if colors == 2 else None
        self.lin_colored = nn.Linear(in_channels, in_channels, bias=False) if colors else None
        self.lin_second = nn.Linear(in_channels, in_channels, bias=False) if colors == 2 else None
        self.lin_in = nn.Linear(in_channels, out_channels)
        self.lin_out = nn.Linear(out_channels, out_channels, bias=bias)
        self.make_update(color, colors, in_channels, in_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        super().reset_parameters()
        edge = self.lin_edge, self.lin_edge_colored, self.lin_edge_second
        for lin in filter(None, (*edge, self.lin_in, self.lin_out)):
            lin.reset_parameters()
        for lin in filter(None, (self.lin_colored, self.lin_second)):
            nn.init.eye_(lin.weight)

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        plain, colored = round_.split_by_color(x)
        out = _sum_of_messages(plain, round_.plain, (self.lin_edge,), None, edge_attr)
        if round_.has_color:
            state = self.of_colored(colored, round_, self._state)
            edges = self.lin_edge_colored or self.lin_edge, self.lin_edge_second or self.lin_edge
            second = None if round_.second is None else round_.second - round_.split
            out = out + _sum_of_messages(state, round_.colored, edges, second, edge_attr)
        out = out + (1 + self.eps) * round_.own_states(x)
        update = self.update_of(colored, round_)
        out = out if update is None else add_update(out, update, round_)
        return self.lin_out(activate(self.lin_in(out), self.act, overwrite=True))

    def _state(self, x: Tensor, color: int) -> Tensor:
        lin = (None, self.lin_colored, self.lin_second)[color]
        return x if lin is None else lin(x)


def _sum_of_messages(
    state: Tensor, messages: Messages, lin_edges: tuple[nn.Module, ...], second: int | None, edge_attr: Tensor
) -> Tensor:
    """Edges from sources `[second:]` have the second of two linear layers, if there is a second color."""
    edge = _edge_states(messages, lin_edges[0], edge_attr)
    if second is not None:
        other = _edge_states(messages, lin_edges[1], edge_attr)
        edge = torch.where((messages.source >= second).unsqueeze(-1), other, edge)
    # Unlike the other layers' messages these differ from edge to edge, so they have to be written out.
    sent = (state.index_select(0, messages.source) + edge).relu()
    return sent.new_zeros(messages.ptr.numel() - 1, sent.size(1)).index_add(0, messages.target, sent)


def _edge_states(messages: Messages, lin_edge: nn.Module, edge_attr: Tensor) -> Tensor:
    # The linear layer acts on edges or on messages, whichever are fewer: a batch that is cut out of a dataset has the
    # features of all edges of the dataset beside it.
    if messages.edge.numel() < edge_attr.size(0):
        return lin_edge(edge_attr.index_select(0, messages.edge))
    return lin_edge(edge_attr).index_select(0, messages.edge)
