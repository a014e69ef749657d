"""The plans of a wrapped model: made from the graph and the queries of a call, once for a graph."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.identity_graph import IdentityGraph, identity_graph, identity_graph_of
from idgnn.identity.kept import Kept
from idgnn.identity.schedule import group_messages
from idgnn.identity.second_nodes import SecondNodes
from idgnn.models.inputs import check_one_color, check_prebuilt
from idgnn.models.planner import answers_of
from idgnn.models.wrapping.arguments import ModelCall
from idgnn.models.wrapping.plan import Plan, Rounds, trimmed_plan, whole_plan


class Plans:
    """Makes plans and keeps them for as long as their `edge_index` lives.

    Args:
        second: How nodes and pairs are read with two colors; `None`: there is one color.
    """

    def __init__(self, second: SecondNodes | None) -> None:
        self.second, self.kept = second, Kept()

    def get(
        self,
        call: ModelCall,
        queries: Tensor | None,
        graph: IdentityGraph | None,
        num_layers: int,
        order: Rounds | None,
    ) -> Plan:
        """The plan of a call: of the queries, or of an identity graph that was built before.

        With the rounds of the layers in `order`, a round computes the rows that still matter; otherwise all.
        """
        if graph is not None:
            check_prebuilt(graph, num_layers, self.second)
            depends_on = (graph.node, graph.edge, graph.colored, graph.query_row, graph.plain_row, graph.plain_edge)
            depends_on += (graph.pooled_into,) if "pooled_into" in graph else ()
            return self.kept.get(
                graph.edge_index, (num_layers, order), lambda: _of_graph(graph, num_layers, order), depends_on
            )
        if queries is not None:  # every time, since they may be others
            return self._of_queries(call, queries, num_layers, order)
        key = (num_layers, order, call.num_nodes)
        return self.kept.get(call.edge_index, key, lambda: self._of_queries(call, None, num_layers, order))

    def _of_queries(self, call: ModelCall, queries: Tensor | None, num_layers: int, order: Rounds | None) -> Plan:
        plain = Data(edge_index=call.edge_index, num_nodes=call.num_nodes)
        if self.second is None:
            check_one_color(queries)
            return _of_graph(identity_graph(plain, num_layers=num_layers, queries=queries), num_layers, order)
        reading = self.second.read(IndexedGraph(call.edge_index.long(), call.num_nodes), queries)
        graph = identity_graph_of(plain, num_layers, reading.queries, warn=False, pooled_into=reading.owner)
        return _of_graph(graph, num_layers, order)


def _of_graph(graph: IdentityGraph, num_layers: int, order: Rounds | None) -> Plan:
    plan = whole_plan(graph) if order is None else trimmed_plan(graph, num_layers, order)
    if "pooled_into" not in graph:
        return plan
    owner, number = answers_of(graph)
    every = torch.arange(owner.numel(), device=owner.device)
    return replace(plan, pool=group_messages(every, owner, owner[:0], owner.numel(), number))
