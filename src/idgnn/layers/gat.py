"""GAT with two message functions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from idgnn.identity.rounds import Round
from idgnn.layers.gather import gather_sum
from idgnn.layers.operator import Operator


class IdentityGAT(Operator):
    r"""The layer of Velickovic et al. (2018) with coloured messages, for each head

    .. math::
        \mathbf{m}_s &= \mathbf{W}_{\mathbb{1}[s = v]} \mathbf{h}_s \\
        \alpha_{su} &= \textsc{Softmax}_{s \in \mathcal{N}(u) \cup \{u\}}
            \textsc{LeakyReLU}(\mathbf{a}^\top \mathbf{m}_s + \mathbf{c}^\top \mathbf{W}_0 \mathbf{h}_u) \\
        \mathbf{h}_u' &= \mathbf{b} + \sum_{s \in \mathcal{N}(u) \cup \{u\}} \alpha_{su} \mathbf{m}_s

    and the heads side by side, `out_channels` wide together.
    """

    self_loops = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        identity: bool = True,
        bias: bool = True,
        heads: int = 1,
        negative_slope: float = 0.2,
    ) -> None:
        super().__init__()
        if heads < 1 or out_channels % heads:
            raise ValueError(
                f"out_channels is {out_channels} and heads is {heads}, expected a multiple of at least one head: "
                "the heads stand side by side and share the channels evenly."
            )
        self.heads, self.negative_slope = heads, negative_slope
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.lin_coloured = nn.Linear(in_channels, out_channels, bias=False) if identity else None
        self.att_source = nn.Parameter(torch.empty(heads, out_channels // heads))
        self.att_target = nn.Parameter(torch.empty(heads, out_channels // heads))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for weight in (self.lin.weight, self.att_source, self.att_target):
            nn.init.xavier_uniform_(weight)
        if self.lin_coloured is not None:
            nn.init.xavier_uniform_(self.lin_coloured.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        plain, coloured = round_.apart(x)
        sent = [(self._by_head(self.lin(plain)), round_.plain)]
        if round_.has_colour:
            lin = self.lin_coloured or self.lin
            sent.append((self._by_head(lin(coloured)), round_.coloured))
        # c W_0 h_u is one number a row and head: cheaper as (c W_0) h_u.
        width = self.lin.in_features
        towards = torch.einsum("hc,hci->hi", self.att_target, self.lin.weight.view(self.heads, -1, width))
        asked = (x @ towards.t())[round_.previous]  # [targets, heads]
        score = torch.cat(
            [(m * self.att_source).sum(-1)[messages.source] + asked[messages.target] for m, messages in sent]
        )
        target = torch.cat([messages.target for _, messages in sent])
        alpha = _softmax(leaky_relu(score, self.negative_slope), target, round_.num_targets)
        out = x.new_zeros(())
        parts = alpha.split([messages.source.numel() for _, messages in sent])
        for (m, messages), weights in zip(sent, parts, strict=True):
            by_head = [gather_sum(m[:, head], messages, weights[:, head]) for head in range(self.heads)]
            out = out + torch.cat(by_head, dim=-1)
        return out if self.bias is None else out + self.bias

    def _by_head(self, messages: Tensor) -> Tensor:
        return messages.view(-1, self.heads, self.att_source.size(1))


def _softmax(score: Tensor, target: Tensor, num_targets: int) -> Tensor:
    """Over the messages of each target, in any order: `[messages, heads]`."""
    index = target.unsqueeze(-1).expand_as(score)
    highest = score.new_full((num_targets, score.size(1)), float("-inf")).scatter_reduce(
        0, index, score.detach(), "amax"
    )
    score = (score - highest[target]).exp()
    return score / score.new_zeros(num_targets, score.size(1)).index_add(0, target, score)[target]
