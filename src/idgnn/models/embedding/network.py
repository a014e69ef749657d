"""A network on one large graph: the plain states of all nodes once, then the answers to some queries at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize as l2_normalize

from idgnn.identity.chunks import Chunk, chunk_of, cut, row_bounds
from idgnn.identity.cost import TooLargeError, readable
from idgnn.identity.queries import Queries
from idgnn.models.embedding.forms import Form
from idgnn.models.embedding.memory import Prices
from idgnn.models.embedding.part import States, degree_of

# Bytes of a chunk. More at once is slower on a CPU: 200,000 nodes and 1,000,000 edges with K = 3 (GCN, width 64, one
# thread) took 10 s with chunks of this size and 14 s with such of 4 GiB.
_ON_CPU = 2**28


@dataclass(frozen=True)
class Encoder:
    """The parts of a network in evaluation mode."""

    lin_in: nn.Module
    norms: nn.ModuleList
    lin_out: nn.Module
    normalize: bool
    width: int

    @property
    def num_layers(self) -> int:
        """The number of rounds."""
        return len(self.norms)

    def after(self, layer: int, out: Tensor) -> Tensor:
        """What follows a convolution."""
        return self.norms[layer](out).relu_()

    def answer(self, states: Tensor) -> Tensor:
        """What follows the last round."""
        return self.lin_out(l2_normalize(states, dim=-1) if self.normalize else states)


class Network:
    """A network on one graph, ready to answer queries.

    Args:
        encoder: The parts of the network that are not its convolutions.
        form: Its convolutions on this graph.
        x: Features of the nodes `[num_nodes, in_channels]`.
        read: The nodes that will be asked about. Of all others, only the states that theirs depend on are computed.
        room: Bytes for what is worked on, beside what is kept.
        prices: What that is spent on.
    """

    def __init__(self, encoder: Encoder, form: Form, x: Tensor, read: Tensor, room: float, prices: Prices) -> None:
        self.encoder, self.form, self.links, self.prices = encoder, form, form.links, prices
        # One half for the rows of a chunk, one for the messages of a part of them.
        self.room = room / 2
        self.chunk = min(self.room, _ON_CPU) if x.device.type == "cpu" else self.room
        self.most = self.chunk / prices.message
        self.states = self._plain_states(x, read)  # after 0 ... num_layers rounds, each [num_nodes, width]

    def plain(self, nodes: Tensor) -> Tensor:
        """Embeddings of nodes without any color."""
        return self.encoder.answer(self.states[-1].index_select(0, nodes))

    def colored(self, queries: Queries) -> tuple[Tensor, int]:
        """Embeddings of nodes under colors, and how many of them no color reaches: those are the plain ones."""
        chunk, there = chunk_of(self.links, self.encoder.num_layers, queries)
        answer = self.states[-1].index_select(0, queries.node)
        reached = int(there.sum())
        if reached:
            place = torch.searchsorted(chunk.own(chunk.num_layers), chunk.answer)
            answer[there] = self._rounds(chunk).index_select(0, place)
        return self.encoder.answer(answer), there.numel() - reached

    def chunks(self, queries: Queries) -> Iterator[tuple[int, int]]:
        """Runs of queries, in their order, that fit into the room; refuses one that does not fit alone."""
        rows, between, edges = row_bounds(self.links, self.encoder.num_layers, queries)
        cost = self._cost(rows, between, edges)
        for query in (cost > self.room).nonzero().flatten():  # by the bound; what it really costs may be less
            node = queries.node[query : query + 1]
            alone = Queries(node, node if queries.own else queries.color[query : query + 1])
            self._check(chunk_of(self.links, self.encoder.num_layers, alone)[0], alone)
        yield from cut(cost, self.chunk)

    def _rounds(self, chunk: Chunk) -> Tensor:
        """The states of the rows that answer."""
        rows, edges = chunk.own(0), self.form.edges(chunk)
        h = self.states[0].index_select(0, chunk.rows.node[rows])
        for layer in range(chunk.num_layers):
            states = States(self.states[layer], h, chunk.rows.key[rows], chunk.arrival[rows] == 0)
            rows = chunk.own(layer + 1)
            h = self.encoder.after(layer, self.form.own(layer, chunk, edges, states, rows, self.most))
        return h

    def _plain_states(self, x: Tensor, read: Tensor) -> list[Tensor]:
        # A layer that is run on all nodes at once finds proper numbers everywhere.
        every = torch.arange(x.size(0), device=x.device) if self.form.in_one_go else torch.unique(read)
        into, needed = self.links.into, [every]
        for _ in range(self.encoder.num_layers):
            last = needed[-1]
            if last.numel() < x.size(0):
                _, position = into.expand(last)
                last = torch.unique(torch.cat([last, into.neighbor.index_select(0, position)]))
            needed.append(last)
        needed.reverse()
        # Memory that is never written to is never taken.
        states = [x.new_empty(x.size(0), self.encoder.width) for _ in needed]
        for some in needed[0].split(max(int(self.most), 1)):
            states[0][some] = self.encoder.lin_in(x.index_select(0, some)).relu_()
        for layer, nodes in enumerate(needed[1:]):
            for some in self.form.parts(nodes, self.most):
                states[layer + 1][some] = self.encoder.after(layer, self.form.plain(layer, states[layer], some))
        return states

    def _cost(self, rows: Tensor, between: Tensor, edges: Tensor) -> Tensor:
        """Bytes of chunks with so many rows, edges looked at between them, and edges into them."""
        cost = rows * self.prices.row + between * self.prices.edge
        # All in-edges of the rows and of the rows that they hear from, which are rows of the chunk or nodes.
        return cost + 2 * edges * self.prices.message if self.form.in_one_go else cost

    def _check(self, chunk: Chunk, query: Queries) -> None:
        rows, node = chunk.rows.key.numel(), chunk.rows.node
        edges = degree_of(self.links.into, node).sum() + degree_of(self.links.out, node).sum()
        cost = self._cost(torch.tensor(rows), edges.clamp(max=rows**2), edges)
        if cost > self.room:
            raise TooLargeError(
                f"the embedding of node {int(query.node)} alone has {rows:,} states of its own and takes about "
                f"{readable(float(cost))}, but of the memory that was given {readable(self.room)} are left for that. "
                f"Give about {readable(2 * (float(cost) - self.room))} more (memory=..., --memory), or, if there "
                "are many graphs, take fewer of them at a time. ID-GNN-Fast and networks with fewer layers need less."
            )
