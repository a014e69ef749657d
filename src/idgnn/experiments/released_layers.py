r"""The layers of the released code: the second weights are *added* to the first, and SAGE and GIN apply them late.

Write :math:`[v]` for "1 if the node is colored, else 0". GCN and GAT color what a node sends. SAGE and GIN color
what a node has *received*: the color leaves the colored node one round later than in Eq. 3 of the paper, so that K
rounds see closed walks of length K - 1, and 3 rounds no triangles.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from idgnn.identity.schedule import Round
from idgnn.layers.aggregation import attend, gather_sum, together
from idgnn.layers.gat import IdentityGAT
from idgnn.layers.gcn import IdentityGCN
from idgnn.layers.operator import Operator


class ReleasedGCN(IdentityGCN):
    r""":math:`\mathbf{h}_u' = \sum_s (\hat d_s \hat d_u)^{-1/2} (\mathbf{W} + [s] \mathbf{W}_{id})\, \mathbf{h}_s`."""

    def weight_of(self, color: int) -> Tensor:
        """`W`, and `W + W_id` of colored rows."""
        second = self.lin_colored if color else None
        return self.lin.weight if second is None else self.lin.weight + second.weight


class ReleasedGAT(IdentityGAT):
    r"""GAT of one head on :math:`\mathbf{z}_s = (\mathbf{W} + [s] \mathbf{W}_{id})\, \mathbf{h}_s`.

    .. math::
        \alpha_{su} = \textsc{Softmax}_s\, \textsc{LeakyReLU}(\mathbf{a}^\top \mathbf{z}_s
            + \mathbf{c}^\top \mathbf{z}_u), \qquad \mathbf{h}_u' = \sum_s \alpha_{su} \mathbf{z}_s

    Unlike in Eq. 3 the colored node also pays attention as a colored one.
    """

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        sent = _sent(self, x, round_)
        scores = sent @ torch.cat([self.att_source, self.att_target]).t()
        return attend(sent, scores, together(round_), round_.previous, self.negative_slope)


class ReleasedSAGE(Operator):
    r"""GraphSAGE that takes the mean, and colors the result:

    .. math:: \mathbf{h}_u' = (\mathbf{W} + [u] \mathbf{W}_{id})\,
        \textsc{Concat}(\mathbf{h}_u, \textsc{Mean}(\{\mathbf{h}_s, s \in \mathcal{N}(u)\}))
    """

    def __init__(self, in_channels: int, out_channels: int, identity: bool) -> None:
        super().__init__()
        self.lin = nn.Linear(2 * in_channels, out_channels, bias=False)
        self.lin_colored = nn.Linear(2 * in_channels, out_channels, bias=False) if identity else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for lin in filter(None, (self.lin, self.lin_colored)):
            nn.init.xavier_uniform_(lin.weight)

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        degree = round_.plain.ptr.diff() + round_.colored.ptr.diff()
        mean = _sum_of_neighbors(x, round_) / degree.clamp(min=1).unsqueeze(-1)
        return _colored_result(
            self.lin, self.lin_colored, torch.cat([x.index_select(0, round_.previous), mean], dim=-1), round_
        )


class ReleasedGIN(Operator):
    r"""GIN that colors the result, by a second MLP:

    .. math:: \mathbf{h}_u' = \textsc{Mlp}(\mathbf{y}_u) + [u]\, \textsc{Mlp}_{id}(\mathbf{y}_u), \qquad
        \mathbf{y}_u = \mathbf{h}_u + \sum_{s \in \mathcal{N}(u)} \mathbf{h}_s
    """

    def __init__(self, in_channels: int, out_channels: int, identity: bool) -> None:
        super().__init__()
        self.mlp = _mlp(in_channels, out_channels)
        self.mlp_colored = _mlp(in_channels, out_channels) if identity else None

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for mlp in filter(None, (self.mlp, self.mlp_colored)):
            for layer in (mlp[0], mlp[2]):
                layer.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        return _colored_result(
            self.mlp, self.mlp_colored, x.index_select(0, round_.previous) + _sum_of_neighbors(x, round_), round_
        )


def released_operator(conv: Literal["gcn", "sage", "gat", "gin"], channels: int, identity: bool) -> Operator:
    """The layer of that name; BatchNorm follows and cancels any bias."""
    if conv == "gcn":
        return ReleasedGCN(channels, channels, identity, bias=False)
    if conv == "gat":
        return ReleasedGAT(channels, channels, identity, bias=False)
    return ReleasedSAGE(channels, channels, identity) if conv == "sage" else ReleasedGIN(channels, channels, identity)


def _mlp(in_channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels))


def _sent(layer: IdentityGAT, x: Tensor, round_: Round) -> Tensor:
    """What every source sends: W x, and W_id x besides if it is colored. `[sources, out_channels]`."""
    sent = layer.lin(x)
    if layer.lin_colored is None:
        return sent
    plain, colored = round_.split_by_color(sent)
    return torch.cat([plain, colored + layer.lin_colored(round_.split_by_color(x)[1])])


def _sum_of_neighbors(x: Tensor, round_: Round) -> Tensor:
    return gather_sum(x, together(round_))


def _colored_result(first: nn.Module, second: nn.Module | None, received: Tensor, round_: Round) -> Tensor:
    """The first network on what all targets received, plus the second on what the colored targets received.

    A target is colored if its own state was: `previous >= split`. They are found without reading values on the host,
    so that the step can be captured as a CUDA graph: each colored source is the state of at most one target; sources
    of no target are written to an extra row, which is dropped.
    """
    out = first(received)
    if second is None:
        return out
    extra_row = round_.num_targets
    every = torch.arange(extra_row, device=received.device)
    target = every.new_full((round_.num_sources,), extra_row).scatter(0, round_.previous, every)[round_.split :]
    more = second(torch.cat([received, received.new_zeros(1, received.size(1))]).index_select(0, target))
    return torch.cat([out, out.new_zeros(1, out.size(1))]).index_add(0, target, more.to(out.dtype))[:-1]
