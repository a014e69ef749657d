"""The rows and edges that a model is run on, made from an identity graph once and kept with it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.identity_graph import IdentityGraph
from idgnn.identity.schedule import Messages
from idgnn.models.wrapping.calls import ColoredRows, Context, Trim

Rounds = tuple[tuple[str, int], ...]  # the layers of a chain, each with its round


@dataclass(frozen=True)
class Plan:
    """A graph each of whose rows and edges is a copy of a node and an edge of another, as an identity graph is."""

    node: Tensor  # [rows]
    edge: Tensor  # [edges]
    edge_index: Tensor  # [2, edges]
    context: Context | None  # `None` if nothing is colored
    answer: Tensor  # [queries]: a row of the output
    num_outputs: int
    num_nodes: int  # of the original graph
    num_edges: int
    graph_rows: int  # of the identity graph
    graph_edges: int
    row: Tensor | None = None  # [rows]: the row of the identity graph, `None` if all of them are there in order
    row_edge: Tensor | None = None  # [edges]
    pool: Messages | None = None  # with two colors: from the answers to the queries that they are pooled into

    @property
    def num_rows(self) -> int:
        """The number of rows that the model is given."""
        return self.node.numel()

    def lift_nodes(self, values: Tensor) -> Tensor:
        """From one row per node, or one per row of the identity graph, to one per row."""
        if values.size(0) == self.num_nodes:
            return values.index_select(0, self.node)
        return values if self.row is None else values.index_select(0, self.row)

    def lift_edges(self, values: Tensor) -> Tensor:
        """The same for edges."""
        if values.size(0) == self.num_edges:
            return values.index_select(0, self.edge)
        return values if self.row_edge is None else values.index_select(0, self.row_edge)


def whole_plan(graph: IdentityGraph) -> Plan:
    """All rows in all rounds."""
    rows = ColoredRows.of(graph.colored)
    return Plan(
        graph.node,
        graph.edge,
        graph.edge_index.clone(),  # by whose memory the layers find the context; the graph's own may be used without
        None if rows is None else Context(rows),
        graph.query_row,
        graph.node.numel(),
        graph.plain_row.numel(),
        graph.plain_edge.numel(),
        graph.node.numel(),
        graph.edge.numel(),
    )


def trimmed_plan(graph: IdentityGraph, num_layers: int, rounds: Rounds) -> Plan:
    """The rows that matter in each round: those that are read longest come first, and the edges into them.

    So a round takes the first rows and edges that there are, as in :func:`torch_geometric.utils.trim_to_layer`.
    """
    source, target = graph.edge_index
    last = torch.full_like(graph.node, -1, dtype=torch.int8)  # the last round after which the state of a row is read
    last[graph.query_row] = num_layers
    into = last  # that of the target of each edge, as far as it is known
    for k in range(num_layers, 0, -1):
        into = last.index_select(0, target)
        read = torch.zeros_like(graph.colored, dtype=torch.bool)
        read[source[into == k]] = True
        last[read & (last < k - 1)] = k - 1
    row, num_rows = _descending(last, range(num_layers, -1, -1))
    row_edge, num_edges = _descending(into, range(num_layers, 0, -1))
    place = torch.empty_like(graph.node)
    place[row] = torch.arange(row.numel(), device=row.device)
    colored = graph.colored[row].nonzero().flatten()
    sources = num_rows[:0:-1]  # of round 1, 2, ..., K
    num_colored = torch.searchsorted(colored, colored.new_tensor(sources)).tolist()
    context = None
    if colored.numel():
        by_round = [
            ColoredRows.some(colored[:c], n, graph.colored[row]) if c else None
            for c, n in zip(num_colored, sources, strict=True)
        ]
        trim = Trim(dict(rounds), tuple(by_round), tuple(num_rows[-2::-1]), tuple(num_edges[::-1]))
        context = Context(ColoredRows.some(colored, row.numel(), graph.colored[row]), trim)
    return Plan(
        graph.node[row],
        graph.edge[row_edge],
        torch.stack([place.index_select(0, end.index_select(0, row_edge)) for end in (source, target)]),
        context,
        place[graph.query_row],
        num_rows[0],
        graph.plain_row.numel(),
        graph.plain_edge.numel(),
        graph.node.numel(),
        graph.edge.numel(),
        row,
        row_edge,
    )


def _descending(values: Tensor, levels: range) -> tuple[Tensor, list[int]]:
    """The positions of these values, level by level, and how many there are up to each level."""
    found = [(values == level).nonzero().flatten() for level in levels]
    counts = torch.tensor([part.numel() for part in found]).cumsum(0).tolist()
    return torch.cat(found), counts
