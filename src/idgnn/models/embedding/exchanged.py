r"""Layers that sum: a colored row is the plain one with some of its messages exchanged.

.. math::
    \sum_s w_{su}\, \mathbf{m}_{s|v} = \sum_s w_{su}\, \mathbf{m}_s
        + \sum_{s\ \text{with an own state}} w_{su}\, (\mathbf{m}_{s|v} - \mathbf{m}_s)

The first sum is the same for all colors, and the second runs over the few edges between rows of one color: the rows
of a hub do not each cost all of its edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from idgnn.identity.chunks import Chunk, edges_of_chunk
from idgnn.identity.lookup import Lookup
from idgnn.layers.aggregation import gather_sum
from idgnn.layers.identity_conv import IdentityConv
from idgnn.layers.summed import Summed, as_sum
from idgnn.models.embedding.forms import Form
from idgnn.models.embedding.part import States, degree_of, messages, part_of


@dataclass(frozen=True)
class _Edges:
    """The edges between rows of a chunk, sorted by target."""

    source: Tensor
    target: Tensor
    edge: Tensor


class Exchanged(Form):
    """GCN, GIN, and GraphSAGE that sums or averages."""

    def __init__(self, layers: nn.ModuleList, links: Lookup, weight: Tensor | None, width: int) -> None:
        super().__init__(layers, links, weight, None)
        like = next(layers.parameters())
        # The sums over all messages of every node, round by round. Only what is needed is ever written to.
        self.total = [like.new_empty(links.num_nodes, width) for _ in layers]

    def plain(self, layer: int, states: Tensor, nodes: Tensor) -> Tensor:
        """A round on plain states; the sums are kept."""
        summed = self._summed(layer)
        part = part_of(self.links, States.of_nodes(states), nodes, None)
        sent = summed.message(states.index_select(0, part.number), False)
        total = self._sum(sent, part.source, part.target, nodes.numel(), part.edge)
        self.total[layer][nodes] = total
        return self._combine(summed, total, states.index_select(0, nodes), nodes)

    def edges(self, chunk: Chunk) -> _Edges:
        """The edges between rows of the chunk."""
        return _Edges(*edges_of_chunk(self.links, chunk))

    def own(self, layer: int, chunk: Chunk, edges: _Edges, states: States, rows: Tensor, most: float) -> Tensor:
        """A round for rows of a chunk."""
        summed = self._summed(layer)
        before = chunk.own(layer)
        # s has a state of its own before this round and u after it; the other two conditions follow from these.
        now = (chunk.arrival[edges.source] <= layer) & (chunk.remaining[edges.target] < chunk.num_layers - layer)
        place, place_before = _places(rows, chunk.arrival), _places(before, chunk.arrival)
        source, target = place_before[edges.source[now]], place[edges.target[now]]
        node = chunk.rows.node.index_select(0, rows)
        total = self.total[layer].index_select(0, node)
        total += self._sum(self._exchange(summed, states), source, target, rows.numel(), edges.edge[now])
        # Before the color arrives, a row's state is the plain one.
        previous = states.plain.index_select(0, node)
        arrived = (chunk.arrival[rows] <= layer).nonzero().flatten()
        previous[arrived] = states.own.index_select(0, place_before[rows[arrived]])
        return self._combine(summed, total, previous, node)

    def _exchange(self, summed: Summed, states: States) -> Tensor:
        """What a row sends in place of its node's plain message: the difference `[own rows, channels]`."""
        sent = summed.message(states.own, False)
        colored = states.colored.nonzero().flatten()
        sent[colored] = summed.message(states.own.index_select(0, colored), True)
        node = states.key % states.plain.size(0)
        return sent.sub_(summed.message(states.plain.index_select(0, node), False))

    def _sum(self, sent: Tensor, source: Tensor, target: Tensor, num_targets: int, edge: Tensor) -> Tensor:
        return gather_sum(sent, messages(source, target, num_targets, edge), edge_weight=self.weight)

    def _summed(self, layer: int) -> Summed:
        return cast(Summed, as_sum(cast(IdentityConv, self.layers[layer]).operator))

    def _combine(self, summed: Summed, total: Tensor, states: Tensor, node: Tensor) -> Tensor:
        return summed.combine(total, states, degree_of(self.links.into, node))


def _places(chosen: Tensor, rows: Tensor) -> Tensor:
    """The place of each of the rows of a chunk among the chosen ones; of the others, anything."""
    place = torch.empty_like(rows)
    place[chosen] = torch.arange(chosen.numel(), device=rows.device)
    return place
