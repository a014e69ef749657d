"""GraphSAGE with a message function for each color."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idgnn.choices import Aggregation, Color
from idgnn.identity.schedule import Blocks, Round, TakesBlocks
from idgnn.layers.aggregation import gather_max, together
from idgnn.layers.linear import linear
from idgnn.layers.operator import SumOperator


class IdentitySAGE(SumOperator):
    r"""GraphSAGE as the paper has it (Eq. 2), with colored messages:

    .. math::
        \mathbf{m}_s &= \textsc{ReLU}(\mathbf{W}_{\mathbb{1}[s = v]} \mathbf{h}_s + \mathbf{b}_{\mathbb{1}[s = v]}) \\
        \mathbf{h}_u' &= \mathbf{U}\, \textsc{Concat}\big(\textsc{Max}(\{\mathbf{m}_s, s \in \mathcal{N}(u)\}),
            \mathbf{h}_u\big) + \mathbf{c}

    and :math:`\mathbf{W}_c \mathbf{h}_v` more for the colored row itself if its update is colored. The maximum over no
    messages is zero. `aggr` may also be `"mean"` or `"sum"`.
    """

    options = ("aggr",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        colors: int = 1,
        bias: bool = True,
        aggr: Aggregation = "max",
        color: Color = "message",
    ) -> None:
        super().__init__()
        if aggr not in ("max", "mean", "sum"):
            raise ValueError(f"aggr is {aggr!r}, expected 'max', 'mean' or 'sum'.")
        self.aggr = aggr
        self.lin = nn.Linear(in_channels, out_channels)
        self.lin_colored = nn.Linear(in_channels, out_channels) if colors else None
        self.lin_second = nn.Linear(in_channels, out_channels) if colors == 2 else None
        self.lin_out = nn.Linear(out_channels + in_channels, out_channels, bias=bias)
        self.make_update(color, colors, in_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        super().reset_parameters()
        for lin in filter(None, (self.lin, self.lin_colored, self.lin_second, self.lin_out)):
            lin.reset_parameters()

    @property
    def sums(self) -> bool:
        """Means are sums, maxima are not."""
        return self.aggr != "max"

    @property
    def takes_blocks(self) -> TakesBlocks | None:
        """The maximum of maxima is the maximum."""
        return None if self.sums else "all"

    def block_values(self, x: Tensor, blocks: Blocks) -> tuple[Tensor]:
        """The maxima `[blocks, channels]`."""
        return _maxima(self.message(x, 0), blocks)

    def message(self, x: Tensor, color: int) -> Tensor:
        """`ReLU(W h + b)`."""
        lin = self._lin_of(color)
        return linear(x, lin.weight, lin.bias).relu_()

    def messages(self, x: Tensor, round_: Round) -> tuple[Tensor, Tensor | None]:
        """`ReLU(W h + b)` of all sources."""
        lins = [self._lin_of(color) for color in range(1 + len(round_.num_of_color))]
        sent, update = self.by_color(x, round_, [lin.weight for lin in lins], [lin.bias for lin in lins])
        return sent.relu_(), update

    def _lin_of(self, color: int) -> nn.Linear:
        return (self.lin, self.lin_colored, self.lin_second)[color] or self.lin

    def combine(self, total: Tensor, x: Tensor, round_: Round) -> Tensor:
        """`U [aggregate, h_u]`."""
        if self.aggr == "mean":
            total = total / round_.received.clamp(min=1).unsqueeze(-1)
        if round_.num_targets <= round_.num_sources:
            both = torch.cat([total, round_.own_states(x)], dim=-1)
            return linear(both, self.lin_out.weight, self.lin_out.bias)
        # Several targets have the state of the same source: its product is made once.
        to_total, to_own = self.lin_out.weight.split([total.size(1), x.size(1)], dim=1)
        return linear(total, to_total, self.lin_out.bias).add_(linear(x, to_own).index_select(0, round_.previous))

    def direct(self, x: Tensor, round_: Round, weight: Tensor | None) -> Tensor:
        """As every layer that sums, or with maxima in place of sums."""
        if self.sums:
            return super().direct(x, round_, weight)
        sent, update = self.messages(x, round_)
        if round_.blocks is not None:
            plain, colored = round_.split_by_color(sent)
            sent = torch.cat([plain, *(round_.blocks.known or _maxima(plain, round_.blocks)), colored])
        return self.conclude(gather_max(sent, together(round_)), x, update, round_)


def _maxima(sent: Tensor, blocks: Blocks) -> tuple[Tensor]:
    assert blocks.messages is not None
    return (gather_max(sent, blocks.messages),)
