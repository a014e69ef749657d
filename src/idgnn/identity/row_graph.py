"""Graphs of copies of nodes, and the schedules of all of their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, distinct, incoming
from idgnn.identity.identity_graph import IdentityGraph
from idgnn.identity.schedule import Schedule, color_sizes, is_in_order, ordered, split_round


@dataclass(frozen=True)
class RowGraph:
    """A graph of copies of nodes and edges, some of them colored, and the rows that answer the queries.

    The nodes themselves, an identity graph or ego networks: what a network of any layers is run on, all rows each time.
    """

    edge_index: Tensor  # [2, edges]
    edge: Tensor  # [edges] the edge of the original graph that each is a copy of
    node: Tensor  # [rows] the node of the original graph that each is a copy of
    colored: Tensor  # [rows] bool, or the color 0, 1 or 2
    query_row: Tensor  # [queries]

    @staticmethod
    def of(graph: IdentityGraph) -> RowGraph:
        """The rows of an identity graph."""
        return RowGraph(graph.edge_index, graph.edge, graph.node, graph.colored, graph.query_row)

    @staticmethod
    def of_nodes(edge_index: Tensor, num_nodes: int, colored: Tensor | None = None) -> RowGraph:
        """The nodes themselves, each read where it is; none of them colored, or those that are named."""
        node = torch.arange(num_nodes, device=edge_index.device)
        edge = torch.arange(edge_index.size(1), device=edge_index.device)
        if colored is None:
            colored = torch.zeros_like(node, dtype=torch.bool)
        return RowGraph(edge_index, edge, node, colored, node)

    def into(self, first_loop: int | None) -> Adjacency:
        """The in-neighbors of every row; with `first_loop`, the number of edges of the original graph, each row has
        exactly one self-loop, its last in-edge, which is edge `first_loop + node`."""
        edge_index, edge = self.edge_index, self.edge
        if first_loop is not None:
            other = edge_index[0] != edge_index[1]
            every = torch.arange(self.node.numel(), device=edge.device)
            edge_index = torch.cat([edge_index[:, other], every.expand(2, -1)], dim=1)
            edge = torch.cat([edge[other], first_loop + self.node])
        into = incoming(edge_index, self.node.numel())
        return Adjacency(into.ptr, into.neighbor, edge[into.edge])


def whole(rows: RowGraph, num_layers: int, first_loop: int | None = None) -> Schedule:
    """Every row in every round: the plain twin of :func:`idgnn.identity.schedule_builder.make_schedule`."""
    into = rows.into(first_loop)
    every = torch.arange(rows.node.numel(), device=rows.node.device)
    order, (place,) = ordered(rows.colored, every)
    owner, position = into.expand(order)
    split, second = color_sizes(rows.colored, order)
    messages = place[into.neighbor[position]], owner, into.edge[position]
    round_ = replace(split_round(messages, every, split, order.numel(), second=second), in_order=True)
    node, answer = rows.node[order], place[rows.query_row]
    in_order = is_in_order(node, node.numel()), is_in_order(answer, node.numel())
    return Schedule(node, (round_,) * num_layers, answer, (), *in_order)


def trimmed(graph: IdentityGraph, num_layers: int, first_loop: int | None = None) -> Schedule:
    """The rows of an identity graph that was built before that each round needs, by its own edges."""
    into = RowGraph.of(graph).into(first_loop)
    plain_of = graph.plain_row[graph.node]
    every = torch.arange(graph.arrival.numel(), device=graph.arrival.device)
    targets, answer = distinct(graph.query_row, every.numel())
    rounds = []
    for depth in range(num_layers - 1, -1, -1):
        # Before the color arrives, a row's state is the plain one and is read there; before the farther one of two
        # colors does, it is that of a row under the nearer one.
        state = torch.where(graph.arrival <= depth, every, plain_of)
        if "before" in graph:
            state = torch.where(graph.arrival <= depth, every, state[graph.before])
        owner, position = into.expand(targets)
        source, previous = state[into.neighbor[position]], state[targets]
        sources, (source, previous) = ordered(graph.colored, source, previous)
        split, second = color_sizes(graph.colored, sources)
        messages = source, owner, into.edge[position]
        rounds.append(split_round(messages, previous, split, sources.numel(), second=second))
        targets = sources
    last = is_in_order(answer, rounds[0].num_targets)
    return Schedule(graph.node[targets], tuple(reversed(rounds)), answer, answers_in_order=last)
