"""Which rows a network computes in which round: worked out from the graph and the queries, once per graph."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cone import cones, join, warn_unreached
from idgnn.identity.cost import check_schedule_fits
from idgnn.identity.ego import ego_networks
from idgnn.identity.identity_graph import IdentityGraph, identity_graph
from idgnn.identity.kept import Kept
from idgnn.identity.queries import as_queries
from idgnn.identity.row_graph import RowGraph, trimmed, whole
from idgnn.identity.schedule import Schedule
from idgnn.identity.schedule_builder import make_schedule
from idgnn.layers.operator import Operator
from idgnn.models.inputs import Inputs

Engine = Literal["trimmed", "exchange", "graph", "ego"]
Plan = Schedule | RowGraph


class Planner:
    """Makes plans for one network: a schedule of rounds if its layers are ours, else the rows to run all layers on.

    Args:
        num_layers: The number of rounds.
    """

    def __init__(self, num_layers: int) -> None:
        self.num_layers = num_layers
        self.kept = Kept()

    def plain(self, inputs: Inputs, operator: Operator | None) -> Plan:
        """For the plain GNN: all nodes in all rounds."""
        rows = RowGraph.of_nodes(inputs.edge_index, inputs.num_nodes)
        if operator is None:
            return rows
        return self.kept.get(
            inputs.edge_index, inputs.num_nodes, lambda: whole(rows, self.num_layers, _loop(inputs, operator))
        )

    def full(
        self,
        inputs: Inputs,
        operator: Operator | None,
        queries: Tensor | None,
        graph: IdentityGraph | None,
        engine: Engine | None,
    ) -> Plan:
        """For ID-GNN-Full: the rows that matter, all rows of the identity graph, or ego networks."""
        if graph is not None:
            self._check_prebuilt(graph, queries, engine)
            if operator is None:
                return RowGraph.of(graph)
            return self.kept.get(
                graph.edge_index,
                engine,
                lambda: self._of_identity_graph(graph, inputs, operator, engine),
                depends_on=(graph.query_row, graph.colored, graph.arrival, graph.node, graph.edge, graph.plain_row),
            )
        if queries is not None:  # nothing to remember it by: where this is called often, build the graph before
            return self._build(inputs, operator, queries, engine)
        key = (engine, inputs.num_nodes)
        return self.kept.get(inputs.edge_index, key, lambda: self._build(inputs, operator, None, engine))

    def _build(self, inputs: Inputs, operator: Operator | None, queries: Tensor | None, engine: Engine | None) -> Plan:
        data = Data(edge_index=inputs.edge_index, num_nodes=inputs.num_nodes)
        if engine == "ego":
            # Layers that are not ours take degrees from the rows they see: one hop more makes them right.
            rows = ego_networks(data, self.num_layers + (operator is None), queries)
            return rows if operator is None else whole(rows, self.num_layers, _loop(inputs, operator))
        if engine == "graph" or operator is None:
            graph = identity_graph(data, self.num_layers, queries)
            return RowGraph.of(graph) if operator is None else self._of_identity_graph(graph, inputs, operator, engine)
        indexed = self.kept.get(
            inputs.edge_index,
            ("indexed", inputs.num_nodes),
            lambda: IndexedGraph(inputs.edge_index, inputs.num_nodes, operator.self_loops),
        )
        exchange = None if operator.sums and engine is None else engine == "exchange"
        asked = as_queries(queries, inputs.num_nodes, inputs.x.device)
        check_schedule_fits(indexed, self.num_layers, asked, exchange is not False)
        cone = join(cones(indexed, self.num_layers, asked))
        unreached = int((~cone.find(asked)[1]).sum())
        warn_unreached(unreached, asked.node.numel(), self.num_layers, stacklevel=5)
        return make_schedule(indexed, asked, self.num_layers, exchange=exchange, cone=cone)

    def _of_identity_graph(
        self, graph: IdentityGraph, inputs: Inputs, operator: Operator, engine: Engine | None
    ) -> Schedule:
        if engine != "graph":
            return trimmed(graph, self.num_layers, _loop(inputs, operator))
        return whole(RowGraph.of(graph), self.num_layers, _loop(inputs, operator))

    def _check_prebuilt(self, graph: Any, queries: Tensor | None, engine: Engine | None) -> None:
        if queries is not None:
            raise ValueError(
                "both graph and queries were given; an identity graph holds its queries. Pass one of them."
            )
        if engine in ("ego", "exchange"):
            raise ValueError(f"engine={engine!r} makes rows of its own. Leave graph out and pass queries.")
        built_for = int(torch.as_tensor(graph.num_layers).min())  # a batch holds one number for each of its graphs
        if built_for < self.num_layers:
            raise ValueError(
                f"the identity graph was built for {built_for} rounds, but the model has {self.num_layers} layers. "
                f"Build it with identity_graph(data, num_layers={self.num_layers})."
            )


def check_engine(engine: Engine | None, operator: Operator | None) -> None:
    """Refuses an engine that does not exist, or that is not for these layers."""
    if engine is None:
        return
    if engine not in get_args(Engine):
        raise ValueError(f"engine is {engine!r}, expected one of {', '.join(get_args(Engine))}.")
    if engine in ("trimmed", "exchange") and operator is None:
        raise ValueError(f"engine={engine!r} is for the named layers; a layer of your own runs with engine='graph'.")
    if engine == "exchange" and operator is not None and not operator.sums:
        raise ValueError("engine='exchange' is for layers that sum: gcn, gin, and sage with aggr='mean' or 'sum'.")


def _loop(inputs: Inputs, operator: Operator) -> int | None:
    """The first id of self-loops, if the layers send messages along them."""
    return inputs.edge_index.size(1) if operator.self_loops else None
