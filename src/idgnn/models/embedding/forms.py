"""How one layer is run on a part of a graph: message by message, for the named layers and for any other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from idgnn.identity.chunks import Chunk, cut
from idgnn.identity.lookup import Lookup
from idgnn.identity.rounds import Round
from idgnn.layers.identity_conv import IdentityConv
from idgnn.models.embedding.part import Part, States, colors_of, degree_of, messages, part_of
from idgnn.models.foreign import plain_layer


class Form(ABC):
    """The layers of a network on one graph.

    Args:
        layers: The convolutions.
        links: The graph.
        weight: Weights of the messages per edge (and self-loop), if there are any.
        edge_attr: Features of the edges, if there are any.
    """

    in_one_go = False
    """Whether a round, of all nodes or of a chunk, is one call with all of its messages."""

    def __init__(self, layers: nn.ModuleList, links: Lookup, weight: Tensor | None, edge_attr: Tensor | None) -> None:
        self.layers, self.links, self.weight, self.edge_attr = layers, links, weight, edge_attr

    def parts(self, nodes: Tensor, most: float) -> Iterator[Tensor]:
        """Nodes by parts that receive about `most` messages each."""
        for first, last in cut(degree_of(self.links.into, nodes) + 1, most):
            yield nodes[first:last]

    @abstractmethod
    def plain(self, layer: int, states: Tensor, nodes: Tensor) -> Tensor:
        """A round on plain states `[num_nodes, channels]` for one part of the nodes."""

    def edges(self, chunk: Chunk) -> Any:
        """What is worked out once for a chunk."""
        return None

    @abstractmethod
    def own(self, layer: int, chunk: Chunk, edges: Any, states: States, rows: Tensor, most: float) -> Tensor:
        """A round for rows of a chunk (their positions, sorted), looking at about `most` messages at once."""


class Direct(Form):
    """The named layers, each row from all of its messages."""

    def plain(self, layer: int, states: Tensor, nodes: Tensor) -> Tensor:
        """A round on plain states."""
        return self._part(layer, States.of_nodes(states), nodes, None)

    def own(self, layer: int, chunk: Chunk, edges: Any, states: States, rows: Tensor, most: float) -> Tensor:
        """A round for rows of a chunk."""
        node, color = chunk.rows.node[rows], colors_of(chunk.rows, rows)
        ends = cut(degree_of(self.links.into, node) + 1, most)
        return torch.cat([self._part(layer, states, node[first:last], color[first:last]) for first, last in ends])

    def _part(self, layer: int, states: States, node: Tensor, color: Tensor | None) -> Tensor:
        part = part_of(self.links, states, node, color)
        weight = None if self.weight is None else self.weight.index_select(0, part.edge)
        edge_attr = None if self.edge_attr is None else self.edge_attr.index_select(0, part.edge)
        operator = cast(IdentityConv, self.layers[layer]).operator
        return operator(states.take(part.number), _round(part, states), weight, edge_attr)


class Foreign(Form):
    """Layers that are not ours: each call gets a graph in which every row that counts has all of its in-edges.

    The rows are the targets, their sources, and one row that stands for all sources of the sources. Nothing is read
    from that one, but layers that count in-edges, as GCN's normalization does, count right.
    """

    in_one_go = True

    def __init__(
        self,
        layers: nn.ModuleList,
        links: Lookup,
        weight: Tensor | None,
        edge_attr: Tensor | None,
        edge_index: Tensor,
    ) -> None:
        super().__init__(layers, links, weight, edge_attr)
        self.edge_index = edge_index

    def parts(self, nodes: Tensor, most: float) -> Iterator[Tensor]:
        """All in one: without colors a layer may look as far as it likes."""
        yield nodes

    def plain(self, layer: int, states: Tensor, nodes: Tensor) -> Tensor:
        """A round on plain states, of all nodes."""
        plain = plain_layer(self.layers[layer])
        return plain(states, self.edge_index, **self._options(None)).index_select(0, nodes)

    def own(self, layer: int, chunk: Chunk, edges: Any, states: States, rows: Tensor, most: float) -> Tensor:
        """A round for rows of a chunk, in one call."""
        node, color, into = chunk.rows.node[rows], colors_of(chunk.rows, rows), self.links.into
        part = part_of(self.links, states, node, color)
        targets, sources = node.numel(), part.number.numel()
        x = states.take(part.number)
        x = torch.cat([x.index_select(0, part.previous), x, torch.zeros_like(x[:1])])
        # A self-loop stays one: its message comes from the target itself, whose state is the same.
        origin = _node_of(part.number, states, self.links.num_nodes)
        loop = origin.index_select(0, part.source) == node.index_select(0, part.target)
        source = torch.where(loop, part.target, targets + part.source)
        owner, position = into.expand(origin)
        its_own = into.neighbor.index_select(0, position) == origin.index_select(0, owner)
        behind = torch.where(its_own, targets + owner, targets + sources)
        edge_index = torch.stack([torch.cat([source, behind]), torch.cat([part.target, targets + owner])])
        colored = color == node * self.links.num_nodes
        senders = part.number >= states.first_colored
        options = self._options(torch.cat([part.edge, into.edge.index_select(0, position)]))
        out = self.layers[layer](x, edge_index, colored=torch.cat([colored, senders, senders.new_zeros(1)]), **options)
        return out[:targets]

    def _options(self, edge: Tensor | None) -> dict[str, Tensor]:
        given = {"edge_attr": self.edge_attr, "edge_weight": self.weight}
        return {
            name: values if edge is None else values.index_select(0, edge)
            for name, values in given.items()
            if values is not None
        }


def _node_of(number: Tensor, states: States, num_nodes: int) -> Tensor:
    """The node that a state belongs to."""
    if states.key.numel() == 0:
        return number
    own = states.key.index_select(0, (number - num_nodes).clamp(min=0) % states.key.numel()) % num_nodes
    return torch.where(number < num_nodes, number, own)


def _round(part: Part, states: States) -> Round:
    """Plain and colored messages apart; edges are numbered by message."""
    split = int((part.number < states.first_colored).sum())
    plain = part.source < split
    every, num_targets = torch.arange(part.edge.numel(), device=part.edge.device), part.previous.numel()
    return Round(
        part.number.numel(),
        num_targets,
        split,
        messages(part.source[plain], part.target[plain], num_targets, every[plain]),
        messages(part.source[~plain] - split, part.target[~plain], num_targets, every[~plain]),
        part.previous,
    )
