"""GAT with a message function for each color."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idgnn.choices import Color
from idgnn.identity.schedule import Blocks, Round, TakesBlocks
from idgnn.layers.aggregation import add_update, attend, attention, attention_and_score, gather_sum, together
from idgnn.layers.linear import linear_by_color
from idgnn.layers.operator import Operator


class IdentityGAT(Operator):
    r"""The layer of Velickovic et al. (2018) with colored messages, for each head

    .. math::
        \mathbf{m}_s &= \mathbf{W}_{\mathbb{1}[s = v]} \mathbf{h}_s \\
        \alpha_{su} &= \textsc{Softmax}_{s \in \mathcal{N}(u) \cup \{u\}}
            \textsc{LeakyReLU}(\mathbf{a}^\top \mathbf{m}_s + \mathbf{c}^\top \mathbf{W}_0 \mathbf{h}_u) \\
        \mathbf{h}_u' &= \mathbf{b} + \sum_{s \in \mathcal{N}(u) \cup \{u\}} \alpha_{su} \mathbf{m}_s

    and the heads side by side, `out_channels` wide together; :math:`\mathbf{W}_c \mathbf{h}_v` is added to the colored
    row itself if its update is colored.
    """

    self_loops = True
    options = ("heads",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        colors: int = 1,
        bias: bool = True,
        heads: int = 1,
        negative_slope: float = 0.2,
        color: Color = "message",
    ) -> None:
        super().__init__()
        if heads < 1 or out_channels % heads:
            raise ValueError(
                f"out_channels is {out_channels} and heads is {heads}, expected at least one head, and out_channels a "
                "multiple of heads: the heads are concatenated and share the channels evenly."
            )
        self.heads, self.negative_slope = heads, negative_slope
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.lin_colored = nn.Linear(in_channels, out_channels, bias=False) if colors else None
        self.lin_second = nn.Linear(in_channels, out_channels, bias=False) if colors == 2 else None
        self.make_update(color, colors, in_channels, out_channels)
        self.att_source = nn.Parameter(torch.empty(heads, out_channels // heads))
        self.att_target = nn.Parameter(torch.empty(heads, out_channels // heads))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        super().reset_parameters()
        for weight in (self.lin.weight, self.att_source, self.att_target):
            nn.init.xavier_uniform_(weight)
        for lin in filter(None, (self.lin_colored, self.lin_second)):
            nn.init.xavier_uniform_(lin.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def takes_blocks(self) -> TakesBlocks:
        r"""A softmax over blocks and within them is the softmax, if all scores have the same :math:`\mathbf{h}_u`."""
        return "plain"

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        sizes = [round_.split, *round_.num_of_color]
        lins = [self._lin_of(color) for color in range(len(sizes))]
        sent, update = self.by_color(x, round_, [lin.weight for lin in lins])
        # a W h is one number a row and head: cheaper as (a W) h, and then of both ends at once.
        plain = self._towards(self.lin)
        ends = [plain]
        for lin in lins[1:]:  # as a target, a colored row is as any other
            ends.append(plain if lin is self.lin else torch.cat([self._towards(lin)[:, :1], plain[:, 1:]], dim=1))
        scores = linear_by_color(x, sizes, [each.flatten(0, 1) for each in ends])  # [sources, 2 * heads]
        if round_.blocks is None:
            out = attend(sent, scores, together(round_), round_.previous, self.negative_slope)
        else:
            out = self._attend_blocks(sent, scores, round_, round_.blocks)
        if update is not None:
            out = add_update(out, update, round_, in_place=False)  # gradients of attention need it as it is
        return out if self.bias is None else out + self.bias

    def block_values(self, x: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor]:
        """Sums of messages, weighted by attention `[blocks, channels]`, and the scores together `[blocks, heads]`."""
        return self._in_blocks(self.lin(x), *self._split(x @ self._towards(self.lin).flatten(0, 1).t()), blocks)

    def _attend_blocks(self, sent: Tensor, scores: Tensor, round_: Round, blocks: Blocks) -> Tensor:
        """Attention over messages and blocks of them."""
        give, ask = self._split(scores)
        asks = ask.index_select(0, round_.previous)  # [targets, heads]
        (plain, colored), (give, give_colored) = round_.split_by_color(sent), round_.split_by_color(give)
        values, score = blocks.known or self._in_blocks(plain, give, ask, blocks)
        sent = torch.cat([plain, values, colored])
        give = torch.cat([give, score.to(give.dtype), give_colored])
        messages, block = together(round_), (round_.split, round_.split + values.size(0))
        alpha = attention(give, asks, messages, self.negative_slope, block)
        return gather_sum(sent, messages, alpha)

    def _in_blocks(self, sent: Tensor, give: Tensor, ask: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor]:
        assert blocks.messages is not None
        asks = ask.index_select(0, blocks.previous)
        alpha, score = attention_and_score(give, asks, blocks.messages, self.negative_slope)
        return gather_sum(sent, blocks.messages, alpha), score

    def _split(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """What rows give to the scores of their messages, and add to those that they receive: `[rows, heads]`."""
        give, ask = scores.view(scores.size(0), self.heads, 2).unbind(-1)
        return give, ask

    def _lin_of(self, color: int) -> nn.Linear:
        return (self.lin, self.lin_colored, self.lin_second)[color] or self.lin

    def _towards(self, lin: nn.Linear) -> Tensor:
        """What both ends of attention make of a state, before it is transformed: `[heads, 2, in_channels]`."""
        ends = torch.stack([self.att_source, self.att_target], dim=1)  # [heads, 2, channels of a head]
        return torch.bmm(ends, lin.weight.view(self.heads, -1, lin.in_features))
