"""A graph of any size, held ready so that a network can be run on a few queries at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import incoming, is_symmetric
from idgnn.identity.cone import contains
from idgnn.identity.cycle_features import cycle_features
from idgnn.identity.neighborhood import Caps, Neighborhood, neighborhood
from idgnn.identity.queries import Queries, as_queries
from idgnn.identity.root_schedule import colored_schedule, plain_schedule
from idgnn.identity.rounds import with_loops
from idgnn.identity.rows import plain_rows
from idgnn.layers.identity_conv import IdentityConv
from idgnn.models.idgnn import IDGNN
from idgnn.models.inputs import of_data
from idgnn.models.prepared import Prepared


class LargeGraph:
    """All that is worked out once for a graph: its neighbor lists, the weights of messages, the counts of ID-GNN-Fast.

    :meth:`prepare` then takes out of it what a batch of queries needs, at a cost that does not grow with the graph.
    Everything stays on the CPU, and the network itself is not kept, so that worker processes can do it.

    Args:
        model: The network; its layers are named ones (gcn, sage, gat, gin, gine).
        data: The graph: `x`, `edge_index`, and `edge_attr` or `edge_weight` if the layers take them.
    """

    def __init__(self, model: IDGNN, data: Data) -> None:
        first = model.convs[0] if isinstance(model, IDGNN) else None
        if not isinstance(first, IdentityConv) or type(model).prepare is not IDGNN.prepare:
            layers = "" if first is None else f" with layers {type(first).__name__}"
            raise ValueError(
                f"the network is a {type(model).__name__}{layers}, but batches of queries are for an IDGNN with named "
                "layers alone: expected conv='gcn', 'sage', 'gat', 'gin' or 'gine'."
            )
        inputs = of_data(data, model, torch.device("cpu"))
        first.check_edges(inputs.edge_index, inputs.edge_attr, inputs.edge_weight)
        edge_index, self.num_nodes = inputs.edge_index, inputs.num_nodes
        self.num_layers, self.identity = model.num_layers, model.identity
        self.num_edges, self.self_loops = edge_index.size(1), first.operator.self_loops
        self.edge_attr = inputs.edge_attr
        self.weight = first.operator.edge_values(edge_index, self.num_nodes, inputs.edge_weight, inputs.x.dtype)
        self.into = (
            with_loops(plain_rows(edge_index, self.num_nodes), self.num_edges)
            if self.self_loops
            else incoming(edge_index, self.num_nodes)
        )
        self.symmetric = self.identity == "full" and is_symmetric(edge_index, self.num_nodes)
        self.x = inputs.x
        if self.identity == "fast":
            counts = cycle_features(edge_index, self.num_nodes, model.cycle_length, model.cycle_scale)
            self.x = torch.cat([self.x, counts.to(self.x)], dim=-1)

    def prepare(self, queries: Tensor, fanout: Sequence[int] = (), seed: int = 0) -> Prepared:
        """What the network runs on to answer nodes `[num_queries]` or pairs `[2, num_queries]`.

        Without `fanout` the answers in evaluation mode are those on the whole graph. With it the network sees at most
        so many in-neighbors of each node per hop, drawn with the seed. The degrees are those of the whole graph, and
        where GCN weighs messages, each of those that were drawn counts for as many as were not, so that sums are right
        on average.
        """
        asked = as_queries(queries, self.num_nodes, torch.device("cpu"))
        caps = None
        if fanout:
            check_fanout(fanout, self.num_layers)
            caps = Caps(fanout, torch.Generator().manual_seed(seed), self.self_loops)
        full = self.identity == "full"
        start = asked.node if full or asked.own else torch.cat([asked.node, asked.color])
        near = neighborhood(self.into, start, self.num_layers, caps)
        if full:
            plan, read = colored_schedule(near, _numbered(near, asked), self.num_layers, self.symmetric), None
        else:
            distinct, place = torch.unique(start, return_inverse=True)
            plan = plain_schedule(near, near.number(distinct), self.num_layers)
            node, color = place[: asked.node.numel()], place[-asked.color.numel() :]
            read = Queries(node, node if asked.own else color)
        x = self.x.index_select(0, near.node)
        return Prepared(x, self._weight(near), self._edge_attr(near), plan, read)

    def _weight(self, near: Neighborhood) -> Tensor | None:
        if self.weight is None:
            return None
        weight = self.weight.index_select(0, near.edge)
        if near.missing is None:
            return weight
        rate = torch.repeat_interleave(near.missing, near.into.degree, output_size=near.edge.numel())
        loop = near.edge >= self.num_edges
        return weight * torch.where(loop, 1.0, rate).to(weight)

    def _edge_attr(self, near: Neighborhood) -> Tensor | None:
        return None if self.edge_attr is None else self.edge_attr.index_select(0, near.edge)


def check_fanout(fanout: Sequence[int], num_layers: int) -> None:
    """Refuses anything but one cap for each round."""
    if len(fanout) != num_layers:
        raise ValueError(
            f"fanout is {list(fanout)}, but the network has {num_layers} rounds of messages: expected the most "
            "in-neighbors of a node for each of them, for example "
            f"{[15, 10, *[5] * max(num_layers - 2, 0)][:num_layers]}, or none to have them all."
        )
    for most in fanout:
        if isinstance(most, bool) or not isinstance(most, int) or (most < 1 and most != -1):
            raise ValueError(f"fanout is {list(fanout)}, expected whole numbers of at least 1, or -1 for all.")


def _numbered(near: Neighborhood, asked: Queries) -> Queries:
    """The queries by their numbers in the neighborhood; -1 is a color outside it, which reaches no node there."""
    found, order = torch.sort(near.node)
    node = order.index_select(0, torch.searchsorted(found, asked.node))
    if asked.own:
        return Queries(node, node)
    place, there = contains(found, asked.color)
    return Queries(node, torch.where(there, order.index_select(0, place), -1))
