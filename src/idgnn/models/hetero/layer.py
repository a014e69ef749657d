"""One round over several node types: what it ends with, and linear messages of all edge types together."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, layer_norm, linear

from idgnn.identity.hetero.schedule import ColoredTargets, Slots, TypedRound
from idgnn.layers.aggregation import gather_sum
from idgnn.models.hetero.config import HeteroConfig
from idgnn.models.hetero.linear import grouped_linear


class NodeUpdate(nn.Module):
    r"""What every round ends with, t being the type of u, and :math:`\mathbf{a}_u` what its messages came to:

    .. math:: \mathbf{h}_u' = \mathbf{h}_u + \textsc{ReLU}(\textsc{LayerNorm}_t(\mathbf{U}_t \mathbf{h}_u
            + \mathbb{1}[u = v]\, \mathbf{C}_t \mathbf{h}_u + \mathbf{a}_u + \mathbf{b}_t))

    :math:`\mathbf{C}_t` is there with `color="message+update"`, for the types that may be colored, and zero at first.

    Args:
        config: Width, dropout, whether the state before is added, and whether the update is colored.
        num_node_types: The number of node types.
        colored: The node types that may be colored.
    """

    def __init__(self, config: HeteroConfig, num_node_types: int, colored: tuple[int, ...]) -> None:
        super().__init__()
        self.channels, self.residual, self.dropout = config.hidden_channels, config.residual, config.dropout
        self.weight_self = nn.Parameter(torch.empty(num_node_types, self.channels, self.channels))
        self.bias = nn.Parameter(torch.empty(num_node_types, self.channels))
        self.scale = nn.Parameter(torch.empty(num_node_types, self.channels))
        self.shift = nn.Parameter(torch.empty(num_node_types, self.channels))
        self.update_place = {node_type: place for place, node_type in enumerate(colored)}
        made = bool(colored) and config.color == "message+update"
        self.update_colored = nn.Parameter(torch.empty(len(colored), self.channels, self.channels)) if made else None

    def reset_parameters(self) -> None:
        """Draws new weights."""
        draw(self.weight_self, self.channels)
        nn.init.ones_(self.scale)
        for weight in (self.bias, self.shift, *(() if self.update_colored is None else (self.update_colored,))):
            nn.init.zeros_(weight)

    def finish(
        self,
        total: Tensor,
        own: Tensor,
        segments: tuple[tuple[int, int], ...],
        colored: ColoredTargets | None = None,
    ) -> Tensor:
        """The new states, from sums of messages and the states before; rows of a type are slices."""
        sizes = [count for _, count in segments]
        total = total + grouped_linear(own, [self.weight_self[kind] for kind, _ in segments], sizes)
        if colored is not None and self.update_colored is not None:
            weight = self.update_colored[self.update_place[colored.node_type]]
            added = linear(own.index_select(0, colored.place), weight)
            total = total.index_add(0, colored.place, added.to(total.dtype))
        parts = [
            layer_norm(part + self.bias[kind], (self.channels,), self.scale[kind], self.shift[kind])
            for (kind, _), part in zip(segments, total.split(sizes), strict=True)
        ]
        h = torch.cat(parts) if parts else own
        h = dropout(h.relu(), self.dropout, self.training)
        return h + own if self.residual else h


def draw(weight: Tensor, channels: int) -> None:
    """Uniform weights, as those of a linear layer."""
    nn.init.uniform_(weight, -1 / math.sqrt(channels), 1 / math.sqrt(channels))


class FusedLayer(NodeUpdate):
    r"""Linear messages of all edge types together, with second weights for colored ones (Eq. 3):

    .. math:: \mathbf{a}_u = \sum_e \sum_{s \in N_e(u)} w_{su}\, \mathbf{W}_{e, \mathbb{1}[s = v]} \mathbf{h}_s

    with e the edge types into u. The weights w are one over the number of messages of the edge type for a mean, and 1
    for a sum. :class:`~idgnn.models.hetero.operator_layer.OperatorLayer` computes the same one edge type at a time.

    Args:
        config: The options of the network.
        num_node_types: The number of node types.
        num_edge_types: The number of edge types.
        colored: The edge types that have second weights.
        roots: The node types that may be colored.
    """

    def __init__(
        self,
        config: HeteroConfig,
        num_node_types: int,
        num_edge_types: int,
        colored: tuple[int, ...],
        roots: tuple[int, ...],
    ) -> None:
        super().__init__(config, num_node_types, roots)
        self.num_edge_types, channels = num_edge_types, self.channels
        self.place = {edge_type: place for place, edge_type in enumerate(colored)}
        self.weight = nn.Parameter(torch.empty(num_edge_types, channels, channels))
        self.weight_colored = nn.Parameter(torch.empty(len(colored), channels, channels)) if colored else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for weight in (self.weight, self.weight_colored):
            if weight is not None:
                draw(weight, self.channels)
        super().reset_parameters()

    def weight_of(self, kind: int) -> Tensor:
        """The weights of a kind of message: edge type e, or E + e for colored ones."""
        if kind < self.num_edge_types or self.weight_colored is None:
            return self.weight[kind % self.num_edge_types]
        return self.weight_colored[self.place[kind - self.num_edge_types]]

    def forward(
        self,
        x: Tensor,
        round_: TypedRound,
        edge_weight: Tensor | None,
        known: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """`[sources, channels]` to `[targets, channels]`; `known` are plain states and sums of all nodes."""
        exchange = round_.exchange
        if round_.messages is not None:
            total = self.total(x, round_.messages, edge_weight)
        else:
            assert exchange is not None
            plain, own = x.tensor_split([exchange.num_plain])
            if known is not None:
                states, sums = known
            else:
                assert exchange.bases is not None
                states, sums = plain, self.total(plain, exchange.bases, edge_weight)
            # Of a colored row the plain message is taken back, and the colored one is sent in its place.
            change = own * exchange.keep.unsqueeze(-1) - states.index_select(0, exchange.twin)
            sent = torch.cat([change, own.index_select(0, exchange.colored)])
            base = sums.index_select(0, exchange.base)
            total = self.total(sent, exchange.changes, edge_weight, base)
        return self.finish(total, x.index_select(0, round_.previous), round_.segments, round_.colored)

    def total(self, x: Tensor, slots: Slots, edge_weight: Tensor | None, base: Tensor | None = None) -> Tensor:
        """The sum of all messages to each target `[targets, channels]`."""
        entries = gather_sum(x, slots.into, edge_weight=edge_weight)  # [slots, channels]
        if slots.taken.numel():
            entries = torch.cat([entries, x.index_select(0, slots.taken)])
        weights = [self.weight_of(kind) for kind, _ in slots.kinds]
        entries = grouped_linear(entries, weights, [count for _, count in slots.kinds])
        return gather_sum(entries, slots.out, edge_weight=edge_weight, base=base)
