"""A graph of any size, held ready so that a network can be run on a few queries at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import IndexedGraph, distinct
from idgnn.identity.cone import row_bounds
from idgnn.identity.cone_table import ConeTable
from idgnn.identity.cost import check_room, free_memory
from idgnn.identity.identity_graph import identity_graph_of
from idgnn.identity.neighborhood import Caps, neighborhood
from idgnn.identity.queries import Queries, as_queries
from idgnn.identity.row_graph import RowGraph
from idgnn.identity.schedule import Schedule, TakesBlocks, used_edges
from idgnn.identity.schedule_builder import make_schedule, plain_schedule
from idgnn.identity.second_nodes import Reading
from idgnn.models.inputs import Inputs, check_one_color, of_data
from idgnn.models.planner import pooled
from idgnn.models.prepared import Prepared

if TYPE_CHECKING:
    from idgnn.models.idgnn import IDGNN
    from idgnn.models.inputs import AnyEncoder

# The cones of all roots are found once and kept if they take at most this share of the memory that is free.
_TABLE_SHARE = 0.125
_ROW_BYTES, _CHANGE_BYTES = 24, 32


class LargeGraph:
    """All that is worked out once for a graph: its neighbor lists, the weights of messages, the counts of ID-GNN-Fast.

    :meth:`prepare` then takes out of it what a batch of queries needs. Everything stays on the CPU, and the network
    itself is not kept, so that worker processes can do it.

    Args:
        model: The network.
        data: The graph: `x`, `edge_index`, and `edge_attr` or `edge_weight` if the layers take them.
        roots: Nodes that will be queried under their own colors, again and again; their cones are found once.
    """

    def __init__(self, model: AnyEncoder, data: Data, roots: Tensor | None = None) -> None:
        if not hasattr(model, "check_layers"):
            raise ValueError(
                f"the network is a {type(model).__name__}, expected an IDGNN or a model that idgnn.identity_aware "
                "returned."
            )
        self._set_up(model, of_data(data, model, torch.device("cpu")), roots)

    @classmethod
    def of_inputs(cls, model: AnyEncoder, inputs: Inputs) -> LargeGraph:
        """Of a graph that was checked, on any device."""
        graph = cls.__new__(cls)
        graph._set_up(model, inputs, None)
        return graph

    def _set_up(self, model: AnyEncoder, inputs: Inputs, roots: Tensor | None) -> None:
        operator, edge_index, self.num_nodes = model.operator, inputs.edge_index, inputs.num_nodes
        self.num_layers, self.identity, self.second = model.num_layers or 1, model.identity, model.second_nodes
        self.named, self.kind = operator is not None, model.kind
        self.edge_index, self.edge_attr, self.weight = edge_index, inputs.edge_attr, inputs.edge_weight
        self.self_loops, self.sums, self.by_source = False, False, True
        self.blocks: TakesBlocks | None = None
        if operator is not None:
            self.self_loops, self.sums = operator.self_loops, operator.sums
            if next(model.parameters()).device.type == "cpu":
                self.blocks = operator.takes_blocks
                self.by_source = self.blocks != "all"  # maxima send their gradients to the winners, one by one
            self.weight = operator.edge_values(edge_index, self.num_nodes, inputs.edge_weight, inputs.x.dtype)
        self.graph = IndexedGraph(edge_index, self.num_nodes, self.self_loops)
        self.x = inputs.x
        if self.identity == "fast":
            model = cast("IDGNN", model)
            counts = model.counts_of(edge_index, self.num_nodes)
            model.fit_if_needed(counts)
            self.x = torch.cat([self.x, counts.to(self.x)], dim=-1)
        self.table = None
        kept = self.named and self.identity == "full" and self.second is None
        if roots is not None and roots.dim() == 1 and kept and roots.numel():
            colors = torch.unique(roots)
            rows, between, _ = row_bounds(self.graph, self.num_layers, Queries(colors, colors))
            size = float(rows.sum()) * _ROW_BYTES + float(between.sum()) * _CHANGE_BYTES
            if size <= _TABLE_SHARE * free_memory(torch.device("cpu")):
                self.table = ConeTable(self.graph, self.num_layers, colors)

    def prepare(self, queries: Tensor, fanout: Sequence[int] = (), seed: int = 0) -> Prepared:
        """What the network runs on to answer nodes `[num_queries]`, pairs `[2, num_queries]`, or triples of two colors.

        Without `fanout` the answers in evaluation mode are those on the whole graph. With it the network sees at most
        so many in-neighbors of each node per hop, drawn with the seed. The degrees are those of the whole graph, and
        where GCN weighs messages, each of those that were drawn counts for as many as were not, so that sums are right
        on average.
        """
        if self.second is None:
            check_one_color(queries)
            return self._prepared(as_queries(queries, self.num_nodes, self.x.device), fanout, seed)
        return self.prepare_reading(self.second.read(self.graph, queries), fanout, seed)

    def prepare_reading(self, reading: Reading, fanout: Sequence[int] = (), seed: int = 0) -> Prepared:
        """The same for queries with two colors that are pooled."""
        ready = self._prepared(reading.queries, fanout, seed)
        plan, pool = pooled(ready.plan, reading.owner, reading.num_answers)
        return replace(ready, plan=plan, pool=pool)

    def _prepared(self, queries: Queries, fanout: Sequence[int], seed: int) -> Prepared:
        if not self.named:
            if fanout:
                raise ValueError("fanout is for the named layers (conv='gcn', ...). Leave it out.")
            return self.prepare_rows(queries)[0]
        if fanout:
            check_fanout(fanout, self.num_layers)
            return self._sampled(queries, Caps(fanout, torch.Generator().manual_seed(seed), self.self_loops))
        schedule, read = self._schedule(self.graph, queries, self.table)
        nodes, place = distinct(schedule.node, self.num_nodes)
        weight, edge_attr = self.weight, self.edge_attr
        if weight is not None or edge_attr is not None:
            edges, schedule = used_edges(schedule, self.graph)
            if edges is not None:
                weight = None if weight is None else weight.index_select(0, edges)
                edge_attr = None if edge_attr is None else edge_attr.index_select(0, edges)
        return Prepared(
            self.x.index_select(0, nodes), weight, edge_attr, replace(schedule, node=place), read, kind=self.kind
        )

    def prepare_rows(self, queries: Queries) -> tuple[Prepared, int]:
        """For layers that are not ours: a graph of rows, and how many queries no color reaches.

        They take degrees from the rows they see, so the neighborhood has one hop more than there are rounds. Without
        colors a layer may see any number of hops, and the rows are all nodes.
        """
        if self.identity != "full":
            rows = RowGraph.of_nodes(self.edge_index, self.num_nodes)
            return Prepared(self.x, self.weight, self.edge_attr, rows, queries, kind=self.kind), 0
        near = neighborhood(self.graph.into, queries.node, self.num_layers + 1)
        local, size = near.edge_index, near.node.numel()
        answer, color = near.number(queries.node), near.number(queries.color)
        second = None if queries.second is None else near.number(queries.second)
        rows, there = RowGraph.of_nodes(local, size), color >= 0
        inside = (there if second is None else there | (second >= 0)).nonzero().flatten()
        if inside.numel():
            some = Queries(answer, color, second).take(inside)
            graph = identity_graph_of(Data(edge_index=local, num_nodes=size), self.num_layers, some, warn=False)
            rows, answer = RowGraph.of(graph), answer.index_copy(0, inside, graph.query_row)
        weight = None if self.weight is None else self.weight.index_select(0, near.edge)
        edge_attr = None if self.edge_attr is None else self.edge_attr.index_select(0, near.edge)
        x, rows = self.x.index_select(0, near.node), replace(rows, query_row=answer)
        return Prepared(x, weight, edge_attr, rows, None, kind=self.kind), int((answer < size).sum())

    def _schedule(
        self, graph: IndexedGraph, queries: Queries, table: ConeTable | None
    ) -> tuple[Schedule, Queries | None]:
        """The rounds, and which of their answers are read."""
        if self.identity == "full":
            cone, changed = table.take(queries) if table is not None and queries.own else (None, None)
            schedule = make_schedule(
                graph,
                queries,
                self.num_layers,
                exchange=None if self.sums else False,
                cone=cone,
                changed=changed,
                gradients=self.by_source,
                blocks=self.blocks,
                check=check_room,
            )
            return schedule, None
        nodes, place = torch.unique(torch.cat([queries.node, queries.color]), return_inverse=True)
        node, color = place.split(queries.node.numel())
        return plain_schedule(graph, nodes, self.num_layers), Queries(node, node if queries.own else color)

    def _sampled(self, queries: Queries, caps: Caps) -> Prepared:
        """On the in-neighbors that were drawn alone."""
        read = queries.node if self.identity == "full" or queries.own else torch.cat([queries.node, queries.color])
        near = neighborhood(self.graph.into, read, self.num_layers, caps)
        node = near.number(queries.node)
        second = None if queries.second is None else near.number(queries.second)
        numbered = Queries(node, node if queries.own else near.number(queries.color), second)  # -1: a color outside
        schedule, places = self._schedule(near.graph(), numbered, None)
        weight = None if self.weight is None else self.weight.index_select(0, near.edge)
        if weight is not None:
            assert near.missing is not None
            rate = torch.repeat_interleave(near.missing, near.into.degree, output_size=near.edge.numel())
            weight = weight * torch.where(near.edge >= self.edge_index.size(1), 1.0, rate).to(
                weight
            )  # self-loops all stay
        edge_attr = None if self.edge_attr is None else self.edge_attr.index_select(0, near.edge)
        return Prepared(self.x.index_select(0, near.node), weight, edge_attr, schedule, places, kind=self.kind)


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
