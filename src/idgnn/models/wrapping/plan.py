"""The rows and edges that a model is run on, made from an identity graph once and kept with it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from idgnn.identity.identity_graph import IdentityGraph
from idgnn.identity.schedule import Messages
from idgnn.models.wrapping.calls import ColoredRows, Context, Trim

Rounds = tuple[tuple[str, int], ...]  # the layers of a chain, each with its round
# A layer that would apply a weight to its sources and to its targets, most of which are the same rows, is run on all
# sources as its targets if the targets are at least this part of them.
LEAST_PART = 0.5


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


def trimmed_plan(graph: IdentityGraph, num_layers: int, rounds: Rounds, least_part: float = LEAST_PART) -> Plan:
    """The rows that matter in each round: those that are read longest come first, and the edges into them.

    So a round takes the first rows and edges that there are, as in :func:`torch_geometric.utils.trim_to_layer`.
    """
    source, target = graph.edge_index
    last = torch.full_like(graph.node, -1, dtype=torch.int8)  # the last round after which the state of a row is read
    last[graph.query_row] = num_layers
    edges = []  # into rows that are read last after round K, K - 1, ..., 1
    for k in range(num_layers, 0, -1):
        edges.append((last.index_select(0, target) == k).nonzero().flatten())
        read = source.index_select(0, edges[-1])
        last[read[last.index_select(0, read) < k - 1]] = k - 1
    row, num_rows = _joined([(last == k).nonzero().flatten() for k in range(num_layers, -1, -1)])
    row_edge, num_edges = _joined(edges)
    place = torch.empty_like(graph.node)
    place[row] = torch.arange(row.numel(), device=row.device)
    colored = graph.colored.index_select(0, row).nonzero().flatten()
    sources = num_rows[:0:-1]  # of round 1, 2, ..., K
    num_colored = torch.searchsorted(colored, colored.new_tensor(sources)).tolist()
    context = None
    if colored.numel():
        colors = graph.colored.index_select(0, row)
        by_round = [
            ColoredRows.some(colored[:c], n, colors) if c else None for c, n in zip(num_colored, sources, strict=True)
        ]
        trim = Trim(dict(rounds), tuple(by_round), tuple(num_rows[-2::-1]), tuple(num_edges[::-1]), least_part)
        context = Context(ColoredRows.some(colored, row.numel(), colors), trim)
    return Plan(
        graph.node.index_select(0, row),
        graph.edge.index_select(0, row_edge),
        torch.stack([place.index_select(0, end.index_select(0, row_edge)) for end in (source, target)]),
        context,
        place[graph.query_row],
        row.numel() if context is None else num_rows[0],  # layers trim where something is colored
        graph.plain_row.numel(),
        graph.plain_edge.numel(),
        graph.node.numel(),
        graph.edge.numel(),
        row,
        row_edge,
    )


def _joined(parts: list[Tensor]) -> tuple[Tensor, list[int]]:
    """All parts one after the other, and how many there are up to the end of each."""
    return torch.cat(parts), list(accumulate(part.numel() for part in parts))
