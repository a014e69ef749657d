"""Which rows a network computes in which round: worked out from the graph and the queries, once per graph."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.ego import ego_networks
from idgnn.identity.identity_graph import IdentityGraph, build
from idgnn.identity.kept import Kept
from idgnn.identity.rounds import Schedule, trimmed, whole
from idgnn.identity.rows import Rows, plain_rows
from idgnn.models.inputs import Inputs

# A forward pass of width 64 on a star of 10,000 nodes took up to about 7 times the bytes of the identity graph.
_WORKING = 8

Engine = Literal["trimmed", "graph", "ego"]
Plan = Schedule | Rows


class Planner:
    """Makes plans for one network: a schedule of rounds if its layers are ours, else the rows to run all layers on.

    Args:
        num_layers: The number of rounds.
        self_loops: Whether the network's layers send messages along self-loops; `None` if they are not ours.
    """

    def __init__(self, num_layers: int, self_loops: bool | None) -> None:
        self.num_layers, self.self_loops = num_layers, self_loops
        self.named = self_loops is not None
        self.kept = Kept()

    def plain(self, inputs: Inputs) -> Plan:
        """For the plain GNN: all nodes in all rounds."""
        rows = plain_rows(inputs.edge_index, inputs.num_nodes)
        if not self.named:
            return rows
        return self.kept.get(
            inputs.edge_index, inputs.num_nodes, lambda: whole(rows, self.num_layers, self._loop(inputs))
        )

    def full(self, inputs: Inputs, queries: Tensor | None, graph: IdentityGraph | None, engine: Engine) -> Plan:
        """For ID-GNN-Full: the rows of the identity graph that matter, all of them, or ego networks."""
        if graph is not None:
            self._check_prebuilt(graph, queries, engine)
            if not self.named:
                return Rows.of(graph)
            return self.kept.get(
                graph.edge_index,
                engine,
                lambda: self._schedule(graph, inputs, engine),
                depends_on=(graph.query_row, graph.colored, graph.arrival),
            )
        if queries is not None:  # nothing to remember it by: who asks this often builds the identity graph before
            return self._build(inputs, queries, engine)
        return self.kept.get(inputs.edge_index, (engine, inputs.num_nodes), lambda: self._build(inputs, None, engine))

    def _build(self, inputs: Inputs, queries: Tensor | None, engine: Engine) -> Plan:
        data = Data(edge_index=inputs.edge_index, num_nodes=inputs.num_nodes)
        if engine == "ego":
            # Layers that are not ours take degrees from the rows they see: one hop more makes those of the rim whole.
            rows = ego_networks(data, self.num_layers + (not self.named), queries)
            return whole(rows, self.num_layers, self._loop(inputs)) if self.named else rows
        graph = build(data, self.num_layers, queries, times=_WORKING)
        return self._schedule(graph, inputs, engine) if self.named else Rows.of(graph)

    def _schedule(self, graph: IdentityGraph, inputs: Inputs, engine: Engine) -> Schedule:
        if engine == "trimmed":
            return trimmed(graph, self.num_layers, self._loop(inputs))
        return whole(Rows.of(graph), self.num_layers, self._loop(inputs))

    def _loop(self, inputs: Inputs) -> int | None:
        return inputs.edge_index.size(1) if self.self_loops else None

    def choose(self, engine: Engine | None) -> Engine:
        """The engine that was asked for, or the fastest."""
        if engine is None:
            return "trimmed" if self.named else "graph"
        if engine not in get_args(Engine):
            raise ValueError(f"engine is {engine!r}, expected one of {', '.join(get_args(Engine))}.")
        if engine == "trimmed" and not self.named:
            raise ValueError("engine='trimmed' is for the named layers; a layer of your own runs with engine='graph'.")
        return engine

    def _check_prebuilt(self, graph: Any, queries: Tensor | None, engine: Engine) -> None:
        if queries is not None:
            raise ValueError(
                "both graph and queries were given; an identity graph holds its queries. Pass one of them."
            )
        if engine == "ego":
            raise ValueError("engine='ego' makes its own ego networks. Leave graph out and pass queries.")
        built_for = int(torch.as_tensor(graph.num_layers).min())  # a batch holds one number for each of its graphs
        if built_for < self.num_layers:
            raise ValueError(
                f"the identity graph was built for {built_for} rounds, but the model has {self.num_layers} layers. "
                f"Build it with identity_graph(data, num_layers={self.num_layers})."
            )
