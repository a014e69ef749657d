"""One round over several node types by an operator for each edge type."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from idgnn.identity.hetero.edge_rounds import TypedTargets
from idgnn.identity.hetero.schedule import ColoredTargets
from idgnn.identity.hetero.types import EdgeType
from idgnn.layers.identity_conv import IdentityConv
from idgnn.layers.operator import LinearSumOperator, Operator
from idgnn.models.hetero.config import HeteroConfig
from idgnn.models.hetero.layer import NodeUpdate, draw


class LinearMessages(LinearSumOperator):
    r"""The weighted sum of linear messages: :math:`\sum_{s} w_{su}\, \mathbf{W}_{\mathbb{1}[s = v]} \mathbf{h}_s`."""

    def __init__(self, channels: int, identity: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, channels))
        self.weight_colored = nn.Parameter(torch.empty(channels, channels)) if identity else None
        self.make_update("message", identity, channels, channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        super().reset_parameters()
        for weight in (self.weight, self.weight_colored):
            if weight is not None:
                draw(weight, weight.size(1))

    def weight_of(self, colored: bool) -> Tensor:
        """`W`."""
        return self.weight_colored if colored and self.weight_colored is not None else self.weight

    def finish(self, total: Tensor) -> Tensor:
        """The sum itself."""
        return total


class OperatorLayer(NodeUpdate):
    r"""An operator with colored messages (Eq. 3) for each edge type e:

    .. math:: \mathbf{a}_u = \sum_e \alpha_{u,e}\, \mathbf{o}_{u,e}, \qquad
        \mathbf{o}_{u,e} = \textsc{Conv}_e(\{\mathbf{h}_s, s \in N_e(u)\}, \mathbf{h}_u)

    :math:`\alpha` is 1, or with attention a softmax over the edge types of which a message arrives at u, of
    :math:`\mathbf{q}_e^\top \tanh \mathbf{o}_{u,e}`. Operators that sum run in the delta form, edge type by edge type,
    so that a row of a hub costs what the color changes, with attention too.

    Args:
        config: The options of the network.
        node_types: The node types.
        edge_types: The edge types.
        colored: The edge types that have second weights.
        roots: The node types that may be colored.
        edge_channels: The number of edge features of the types that have some, for `"gine"`; others have `"gin"`.
    """

    def __init__(
        self,
        config: HeteroConfig,
        node_types: Sequence[str],
        edge_types: Sequence[EdgeType],
        colored: tuple[int, ...],
        roots: tuple[int, ...],
        edge_channels: dict[EdgeType, int],
    ) -> None:
        super().__init__(config, len(node_types), roots)

        def operator(number: int, kind: EdgeType) -> Operator:
            width, identity, edge_dim = self.channels, number in colored, edge_channels.get(kind)
            if config.conv == "linear":
                return LinearMessages(width, identity)
            name = "gin" if config.conv == "gine" and edge_dim is None else config.conv
            made = IdentityConv(
                name, width, width, identity=identity, aggr=config.aggr, heads=config.heads, edge_dim=edge_dim
            )
            return made.operator

        self.operators = nn.ModuleList(operator(number, kind) for number, kind in enumerate(edge_types))
        attends = config.combine == "attention"
        self.attention = nn.Parameter(torch.empty(len(edge_types), self.channels)) if attends else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        super().reset_parameters()
        for operator in self.operators:
            operator.reset_parameters()  # pyright: ignore[reportCallIssue]
        if self.attention is not None:
            draw(self.attention, self.channels)

    def forward(self, x: Tensor, round_: Sequence[TypedTargets], edges: Sequence[tuple[Tensor | None, ...]]) -> Tensor:
        """`[sources, channels]` to `[targets, channels]`; `edges` are weights and features of each edge type."""
        totals = [self._total(x, targets, edges) for targets in round_]
        segments = tuple((targets.node_type, targets.previous.numel()) for targets in round_)
        previous = [targets.previous for targets in round_] or [torch.empty(0, dtype=torch.long, device=x.device)]
        own = x.index_select(0, torch.cat(previous))
        colored, first = None, 0
        for targets in round_:
            if targets.colored.numel():  # all of them are of one type
                colored = ColoredTargets(targets.node_type, targets.colored + first)
            first += targets.previous.numel()
        return self.finish(torch.cat(totals) if totals else own, own, segments, colored)

    def _total(self, x: Tensor, targets: TypedTargets, edges: Sequence[tuple[Tensor | None, ...]]) -> Tensor:
        """What the messages to the targets of one node type come to, `[targets, channels]`."""
        zero = x.new_zeros(targets.previous.numel(), self.channels)
        if not targets.edge_types:
            return zero
        outs = []
        for part in targets.edge_types:
            weight, features = edges[part.edge_type]
            rows = x.index_select(0, part.rows)
            outs.append(self.operators[part.edge_type](rows, part.round, weight, features))
        if self.attention is None:
            return torch.stack(outs).sum(0)
        out = torch.stack(outs)  # [edge types, targets, channels]
        arrives = torch.stack([part.received > 0 for part in targets.edge_types])
        query = self.attention[[part.edge_type for part in targets.edge_types]]
        score = (out.tanh() * query.unsqueeze(1)).sum(-1)
        share = score.masked_fill(~arrives, torch.finfo(score.dtype).min).softmax(0) * arrives  # of none, all are 0
        return (share.unsqueeze(-1) * out).sum(0)
