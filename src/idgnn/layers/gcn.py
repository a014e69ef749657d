"""GCN with a message function for each color."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idgnn.choices import Color
from idgnn.identity.schedule import Round
from idgnn.layers.aggregation import gather_sum
from idgnn.layers.operator import LinearSumOperator


class IdentityGCN(LinearSumOperator):
    r"""The layer of Kipf and Welling (2017) with colored messages:

    .. math::
        \mathbf{h}_u' = \mathbf{b} + \sum_{s \in \mathcal{N}(u) \cup \{u\}}
            \frac{e_{su}}{\sqrt{\hat d_s \hat d_u}} \mathbf{W}_{\mathbb{1}[s = v]} \mathbf{h}_s

    and :math:`\mathbf{W}_c \mathbf{h}_v` more for the colored row itself if its update is colored. The degrees
    :math:`\hat d` are those of the whole graph, self-loops included. A node whose degree is not positive, as
    negative weights can make it, sends and receives nothing.
    """

    self_loops = True
    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        colors: int = 1,
        bias: bool = True,
        color: Color = "message",
    ) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.lin_colored = nn.Linear(in_channels, out_channels, bias=False) if colors else None
        self.lin_second = nn.Linear(in_channels, out_channels, bias=False) if colors == 2 else None
        self.make_update(color, colors, in_channels, out_channels)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        super().reset_parameters()
        for lin in filter(None, (self.lin, self.lin_colored, self.lin_second)):
            nn.init.xavier_uniform_(lin.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def edge_values(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, dtype: torch.dtype) -> Tensor:
        r""":math:`e_{su} / \sqrt{\hat d_s \hat d_u}` per edge, then per self-loop.

        A self-loop that the graph has already keeps its weight, the last one if there are several; all others have
        weight 1.
        """
        source, target = edge_index
        weight = torch.ones(source.numel(), device=source.device, dtype=dtype) if edge_weight is None else edge_weight
        loop = source == target
        loop_weight = _last_of_each(source, loop, num_nodes, weight)
        degree = loop_weight.index_add(0, target[~loop], weight[~loop])
        none = degree <= 0
        scale = degree.masked_fill(none, 1.0).pow(-0.5).masked_fill(none, 0.0)
        return torch.cat([scale[source] * weight * scale[target], scale * loop_weight * scale])

    def weight_of(self, color: int) -> Tensor:
        """`W`."""
        return ((self.lin, self.lin_colored, self.lin_second)[color] or self.lin).weight

    def finish(self, total: Tensor) -> Tensor:
        """Adds the bias."""
        return total if self.bias is None else total + self.bias

    def direct(self, x: Tensor, round_: Round, weight: Tensor | None) -> Tensor:
        """As every layer that sums; but W may act on sums or on summands, and is applied to whichever are fewer."""
        if round_.num_targets >= round_.split:
            return super().direct(x, round_, weight)
        plain, colored = round_.split_by_color(x)
        total = self.message(gather_sum(plain, round_.plain, edge_weight=weight), 0)
        if not round_.has_color:
            return self.conclude(total, x, self.update_of(colored, round_), round_)
        sent, update = self.colored_messages(colored, round_)
        return self.conclude(gather_sum(sent, round_.colored, edge_weight=weight, base=total), x, update, round_)


def _last_of_each(node: Tensor, loop: Tensor, num_nodes: int, weight: Tensor) -> Tensor:
    """The weight of the last self-loop of each node, 1 where there is none: `[num_nodes]`."""
    place = loop.nonzero().flatten()
    last = torch.full((num_nodes,), -1, device=node.device).scatter_reduce(0, node[place], place, "amax")
    if place.numel() == 0:
        return weight.new_ones(num_nodes)
    return torch.where(last >= 0, weight[last.clamp(min=0)], 1.0)
