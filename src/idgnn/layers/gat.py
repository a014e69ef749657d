"""GAT with a message function for each color."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idgnn.choices import Color
from idgnn.identity.schedule import Blocks, Messages, Round, TakesBlocks
from idgnn.layers.aggregation import attention, attention_and_score, gather_sum
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
        plain, colored = round_.split_by_color(x)
        give, ask = self._scores(x)
        gives, sent = [give[: round_.split]], self.lin(plain)
        blocks, scores = round_.blocks, None
        if round_.has_color:
            gives.append(self.of_colored(colored, round_, self._gives))
        if blocks is not None:
            values, scores = blocks.known or self._in_blocks(sent, gives[0], ask, blocks)
            sent = torch.cat([sent, values])
        asks = ask.index_select(0, round_.previous)  # [targets, heads]
        alphas = attention(gives, asks, round_, self.negative_slope, scores)
        out = self._sum(sent, round_.plain, alphas[0])
        if round_.has_color:
            sent = self.of_colored(colored, round_, lambda x, color: self._lin_of(color)(x))
            out = self._sum(sent, round_.colored, alphas[1], out)
        out = self.color_update(out, colored, round_)
        return out if self.bias is None else out + self.bias

    def block_values(self, x: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor]:
        """Sums of messages, weighted by attention `[blocks, channels]`, and the scores together `[blocks, heads]`."""
        return self._in_blocks(self.lin(x), *self._scores(x), blocks)

    def _in_blocks(self, sent: Tensor, give: Tensor, ask: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor]:
        assert blocks.messages is not None
        asks = ask.index_select(0, blocks.previous)
        alpha, score = attention_and_score(give, asks, blocks.messages, self.negative_slope)
        return self._sum(sent, blocks.messages, alpha), score

    def _scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What rows give to the scores of their plain messages, and add to those that they receive: `[rows, heads]`."""
        # a W h is one number a row and head: cheaper as (a W) h, and then of both ends at once.
        ends = torch.cat([self._towards(self.att_source, self.lin), self._towards(self.att_target, self.lin)])
        give, ask = (x @ ends.t()).split(self.heads, dim=1)
        return give, ask

    def _lin_of(self, color: int) -> nn.Linear:
        return (self.lin, self.lin_colored, self.lin_second)[color] or self.lin

    def _gives(self, x: Tensor, color: int) -> Tensor:
        """What rows of a color give to the scores of their messages: `[rows, heads]`."""
        return x @ self._towards(self.att_source, self._lin_of(color)).t()

    def _towards(self, att: Tensor, lin: nn.Linear) -> Tensor:
        """What the attention to each head makes of a state, before it is transformed: `[heads, in_channels]`."""
        return torch.einsum("hc,hci->hi", att, lin.weight.view(self.heads, -1, lin.in_features))

    def _sum(self, sent: Tensor, messages: Messages, alpha: Tensor, base: Tensor | None = None) -> Tensor:
        width = self.att_source.size(1)
        heads = sent.split(width, dim=1)
        bases = [None] * self.heads if base is None else base.split(width, dim=1)
        sums = (gather_sum(heads[i], messages, alpha[:, i], base=bases[i]) for i in range(self.heads))
        return next(sums) if self.heads == 1 else torch.cat(list(sums), dim=-1)
