"""One round of heterogeneous message passing over several node types, with weights for each edge type."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, layer_norm
from torch_geometric.utils import softmax

from idgnn.identity.hetero.schedule import Slots, TypedRound
from idgnn.layers.aggregation import gather_sum
from idgnn.models.hetero.linear import grouped_linear


class HeteroLayer(nn.Module):
    r"""GraphSAGE for each edge type, with colored messages (Eq. 3):

    .. math::
        \mathbf{a}_u &= \sum_e \alpha_{u,e} \sum_{s \in N_e(u)} w_{su}\, \mathbf{W}_{e, \mathbb{1}[s = v]} \mathbf{h}_s
        \\ \mathbf{h}_u' &= \mathbf{h}_u + \textsc{ReLU}(\textsc{LayerNorm}_t(\mathbf{U}_t \mathbf{h}_u
            + \mathbf{a}_u + \mathbf{b}_t))

    with e the edge types into u and t the type of u. The weights w are one over the number of messages of the edge
    type for a mean, and 1 for a sum. :math:`\alpha` is 1, or with attention a softmax over the edge types that arrive.

    Args:
        channels: The width of the states.
        num_node_types: The number of node types.
        num_edge_types: The number of edge types.
        colored: The edge types that have second weights.
        attention: Whether edge types are weighed by attention.
        residual: Whether the state before is added.
        dropout: The share of the result that is set to zero in training.
    """

    def __init__(
        self,
        channels: int,
        num_node_types: int,
        num_edge_types: int,
        colored: tuple[int, ...],
        attention: bool,
        residual: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.channels, self.num_edge_types = channels, num_edge_types
        self.residual, self.dropout = residual, dropout
        self.place = {edge_type: place for place, edge_type in enumerate(colored)}
        self.weight = nn.Parameter(torch.empty(num_edge_types, channels, channels))
        self.weight_colored = nn.Parameter(torch.empty(len(colored), channels, channels)) if colored else None
        self.weight_self = nn.Parameter(torch.empty(num_node_types, channels, channels))
        self.bias = nn.Parameter(torch.empty(num_node_types, channels))
        self.scale = nn.Parameter(torch.empty(num_node_types, channels))
        self.shift = nn.Parameter(torch.empty(num_node_types, channels))
        self.attention = nn.Parameter(torch.empty(num_edge_types, channels)) if attention else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        bound = 1 / math.sqrt(self.channels)
        for weight in (self.weight, self.weight_colored, self.weight_self, self.attention):
            if weight is not None:
                nn.init.uniform_(weight, -bound, bound)
        nn.init.ones_(self.scale)
        for weight in (self.bias, self.shift):
            nn.init.zeros_(weight)

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
        return self.finish(total, x.index_select(0, round_.previous), round_.segments)

    def total(self, x: Tensor, slots: Slots, edge_weight: Tensor | None, base: Tensor | None = None) -> Tensor:
        """The sum of all messages to each target `[targets, channels]`."""
        entries = gather_sum(x, slots.into, edge_weight=edge_weight)  # [slots, channels]
        if slots.taken.numel():
            entries = torch.cat([entries, x.index_select(0, slots.taken)])
        weights = [self.weight_of(kind) for kind, _ in slots.kinds]
        entries = grouped_linear(entries, weights, [count for _, count in slots.kinds])
        if self.attention is None:
            return gather_sum(entries, slots.out, edge_weight=edge_weight, base=base)
        return self._attend(entries, slots)

    def finish(self, total: Tensor, own: Tensor, segments: tuple[tuple[int, int], ...]) -> Tensor:
        """The new states, from sums of messages and the states before."""
        sizes = [count for _, count in segments]
        total = total + grouped_linear(own, [self.weight_self[kind] for kind, _ in segments], sizes)
        parts = [
            layer_norm(part + self.bias[kind], (self.channels,), self.scale[kind], self.shift[kind])
            for (kind, _), part in zip(segments, total.split(sizes), strict=True)
        ]
        h = torch.cat(parts) if parts else own
        h = dropout(h.relu(), self.dropout, self.training)
        return h + own if self.residual else h

    def _attend(self, slot: Tensor, slots: Slots) -> Tensor:
        """Weighs the edge types that arrive at a target, plain and colored messages of one edge type together."""
        assert self.attention is not None
        num_targets, (place, kind, target) = slots.out.ptr.numel() - 1, slots.by_edge_type
        value = slot.new_zeros(kind.numel(), self.channels).index_add(0, place, slot)  # [pairs, channels]
        score = (value.tanh() * self.attention.index_select(0, kind)).sum(-1)
        weight = softmax(score, target, num_nodes=num_targets)
        return slot.new_zeros(num_targets, self.channels).index_add(0, target, weight.unsqueeze(-1) * value)
