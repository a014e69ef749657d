"""GraphSAGE with two message functions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idgnn.choices import Aggregation
from idgnn.identity.rounds import Round
from idgnn.layers.aggregation import gather_max, gather_sum
from idgnn.layers.operator import Operator


class IdentitySAGE(Operator):
    r"""GraphSAGE as the paper has it (Eq. 2), with colored messages:

    .. math::
        \mathbf{m}_s &= \textsc{ReLU}(\mathbf{W}_{\mathbb{1}[s = v]} \mathbf{h}_s + \mathbf{b}_{\mathbb{1}[s = v]}) \\
        \mathbf{h}_u' &= \mathbf{U}\, \textsc{Concat}\big(\textsc{Max}(\{\mathbf{m}_s, s \in \mathcal{N}(u)\}),
            \mathbf{h}_u\big) + \mathbf{c}

    The maximum over no messages is zero. `aggr` may also be `"mean"` or `"sum"`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        identity: bool = True,
        bias: bool = True,
        aggr: Aggregation = "max",
    ) -> None:
        super().__init__()
        if aggr not in ("max", "mean", "sum"):
            raise ValueError(f"aggr is {aggr!r}, expected 'max', 'mean' or 'sum'.")
        self.aggr = aggr
        self.lin = nn.Linear(in_channels, out_channels)
        self.lin_colored = nn.Linear(in_channels, out_channels) if identity else None
        self.lin_out = nn.Linear(out_channels + in_channels, out_channels, bias=bias)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for lin in filter(None, (self.lin, self.lin_colored, self.lin_out)):
            lin.reset_parameters()

    def forward(self, x: Tensor, round_: Round, weight: Tensor | None, edge_attr: Tensor | None) -> Tensor:
        """One round: `[sources, in_channels]` to `[targets, out_channels]`."""
        plain, colored = round_.apart(x)
        gather = gather_max if self.aggr == "max" else gather_sum
        out = gather(self.lin(plain).relu(), round_.plain)
        if round_.has_color:
            sent = (self.lin_colored or self.lin)(colored).relu()
            out = gather(sent, round_.colored, base=out)
        if self.aggr == "mean":
            degree = round_.plain.ptr.diff() + round_.colored.ptr.diff()
            out = out / degree.clamp(min=1).unsqueeze(-1)
        return self.lin_out(torch.cat([out, x.index_select(0, round_.previous)], dim=-1))
