"""Which rows a network computes in which round: worked out from the graph and the queries, once per graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import IndexedGraph, distinct
from idgnn.identity.cost import check_schedule_fits
from idgnn.identity.ego import ego_networks_of
from idgnn.identity.identity_graph import IdentityGraph, identity_graph_of, num_answers
from idgnn.identity.kept import Kept
from idgnn.identity.queries import Queries, as_queries, is_triples
from idgnn.identity.row_graph import RowGraph, trimmed, whole
from idgnn.identity.schedule import Messages, Schedule, group_messages
from idgnn.identity.schedule_builder import make_schedule
from idgnn.identity.second_nodes import SecondNodes
from idgnn.identity.two_colors import all_rows
from idgnn.identity.unreached import warn_unreached
from idgnn.layers.operator import Operator
from idgnn.models.inputs import Inputs, check_prebuilt

Engine = Literal["trimmed", "exchange", "graph", "ego"]
Plan = Schedule | RowGraph


class Planner:
    """Makes plans for one network: a schedule of rounds if its layers are ours, else the rows to run all layers on.

    Args:
        num_layers: The number of rounds.
        second: How nodes and pairs are read with two colors; `None`: there is one color.
    """

    def __init__(self, num_layers: int, second: SecondNodes | None = None) -> None:
        self.num_layers, self.second = num_layers, second
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
        size, device = inputs.num_nodes, inputs.x.device
        if queries is not None:  # nothing to remember it by: where this is called often, build the graph before
            return self._build(inputs, operator, as_queries(queries, size, device), engine)
        return self.kept.get(
            inputs.edge_index,
            (engine, size),
            lambda: self._build(inputs, operator, as_queries(None, size, device), engine),
        )

    def two_colors(
        self,
        inputs: Inputs,
        operator: Operator | None,
        queries: Tensor | None,
        graph: IdentityGraph | None,
        engine: Engine | None,
    ) -> tuple[Plan, Messages]:
        """For two colors: the rows, and from their answers to the queries that these are pooled into."""
        if graph is not None:
            return pooled(self.full(inputs, operator, queries, graph, engine), *answers_of(graph))

        def build() -> tuple[Plan, Messages]:
            assert self.second is not None
            reading = self.second.read(self._indexed(inputs, operator), queries)
            plan = self._build(inputs, operator, reading.queries, engine, warn=is_triples(queries))
            return pooled(plan, reading.owner, reading.num_answers)

        if queries is not None:
            return build()
        return self.kept.get(inputs.edge_index, ("two colors", engine, inputs.num_nodes), build)

    def _indexed(self, inputs: Inputs, operator: Operator | None) -> IndexedGraph:
        loops = operator is not None and operator.self_loops
        return self.kept.get(
            inputs.edge_index,
            ("indexed", inputs.num_nodes, loops),
            lambda: IndexedGraph(inputs.edge_index, inputs.num_nodes, loops),
        )

    def _build(
        self,
        inputs: Inputs,
        operator: Operator | None,
        queries: Queries,
        engine: Engine | None,
        warn: bool = True,
    ) -> Plan:
        data = Data(edge_index=inputs.edge_index, num_nodes=inputs.num_nodes)
        if engine == "ego":
            # Layers that are not ours take degrees from the rows they see: one hop more makes them right.
            rows = ego_networks_of(data, self.num_layers + (operator is None), queries)
            return rows if operator is None else whole(rows, self.num_layers, _loop(inputs, operator))
        if engine == "graph" or operator is None:
            graph = identity_graph_of(data, self.num_layers, queries, warn)
            return RowGraph.of(graph) if operator is None else self._of_identity_graph(graph, inputs, operator, engine)
        indexed = self._indexed(inputs, operator)
        exchange = None if operator.sums and engine is None else engine == "exchange"
        check_schedule_fits(indexed, self.num_layers, queries, exchange is not False)
        cone = all_rows(indexed, self.num_layers, queries)
        if warn:
            unreached = int((~cone.find(queries)[1]).sum())
            warn_unreached(unreached, queries.node.numel(), self.num_layers)
        return make_schedule(indexed, queries, self.num_layers, exchange=exchange, cone=cone)

    def _of_identity_graph(
        self, graph: IdentityGraph, inputs: Inputs, operator: Operator, engine: Engine | None
    ) -> Schedule:
        if engine != "graph":
            return trimmed(graph, self.num_layers, _loop(inputs, operator))
        return whole(RowGraph.of(graph), self.num_layers, _loop(inputs, operator))

    def _check_prebuilt(self, graph: IdentityGraph, queries: Tensor | None, engine: Engine | None) -> None:
        if queries is not None:
            raise ValueError(
                "both graph and queries were given; an identity graph holds its queries. Pass one of them."
            )
        if engine in ("ego", "exchange"):
            raise ValueError(f"engine={engine!r} makes rows of its own. Leave graph out and pass queries.")
        check_prebuilt(graph, self.num_layers, self.second)


def answers_of(graph: IdentityGraph) -> tuple[Tensor, int]:
    """The embedding that each query of an identity graph is pooled into `[queries]`, and how many there are."""
    if "pooled_into" in graph:
        return graph.pooled_into, num_answers(graph.pooled_into)
    every = torch.arange(graph.query_row.numel(), device=graph.query_row.device)  # each is read by itself
    return every, every.numel()


def pooled(plan: Plan, owner: Tensor, num_answers: int) -> tuple[Plan, Messages]:
    """A plan that gives each different answer once, and from these to the queries `owner` that they are pooled into."""
    if isinstance(plan, Schedule):
        rows, place = distinct(plan.answer, plan.rounds[-1].num_targets)
        plan = replace(plan, answer=rows)
    else:
        rows, place = distinct(plan.query_row, plan.node.numel())
        plan = replace(plan, query_row=rows)
    return plan, group_messages(place, owner, torch.zeros_like(place), rows.numel(), num_answers)


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
