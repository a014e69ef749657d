"""Builds the graphs out of the tables."""

from __future__ import annotations

from itertools import chain, repeat

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.files.bad_rows import BadRow
from idgnn.graphs.files.columns import features, labels, unknown
from idgnn.graphs.files.gather import Tables
from idgnn.graphs.files.tables import EdgeTable, NodeTable
from idgnn.graphs.schema import Column, Schema


def build_graphs(tables: Tables, schema: Schema, bad: list[BadRow]) -> list[Data]:
    """The graphs, in the order in which the edges and then the nodes first mention them."""
    graphs: dict[str, Data] = {}
    label = schema.label if schema.label_of == "node" else None
    if label is not None and not any(label.name in table.columns for table in tables.nodes):
        label = None
    for table in tables.nodes:
        graphs |= _nodes(table, schema, label, bad)
    for table in tables.edges:
        _add_edges(graphs, table, schema, bad)
    if schema.label is not None and schema.label_of == "graph":
        _add_graph_labels(graphs, tables, schema.label, bad)
    mentioned = dict.fromkeys(chain.from_iterable(table.graph for table in (*tables.edges, *tables.nodes)))
    return [graphs[name] for name in mentioned if name in graphs]


def _nodes(table: NodeTable, schema: Schema, label: Column | None, bad: list[BadRow]) -> dict[str, Data]:
    """The graphs of a node table, still without edges."""
    x = features(schema.node, table, bad) if schema.node else torch.ones(len(table.node), 1)
    y = None if label is None else labels(label, table, bad)
    graphs = {}
    for name, rows in table.rows_of_graphs().items():
        index = torch.from_numpy(rows)
        graph = Data(x=x[index], edge_index=torch.zeros(2, 0, dtype=torch.long))
        if schema.edge:
            graph.edge_attr = torch.zeros(0, sum(column.width for column in schema.edge))
        if schema.weighted:
            graph.edge_weight = torch.zeros(0)
        if y is not None:
            graph.y = y[index]
        graph.node_name = [table.node[row] for row in rows.tolist()]
        graph.graph_name = name
        graphs[name] = graph
        if len(set(graph.node_name)) < len(rows):
            _report_twice(table, rows, bad)
    return graphs


def _report_twice(table: NodeTable, rows: np.ndarray, bad: list[BadRow]) -> None:
    first: dict[str, int] = {}
    for row in rows.tolist():
        earlier = first.setdefault(table.node[row], row)
        if earlier != row and table.node[row]:
            what = f"node {table.node[row]!r} is there already, at {table.lines[earlier]}"
            bad.append(BadRow(table.path, table.lines[row], what))


def _add_edges(graphs: dict[str, Data], table: EdgeTable, schema: Schema, bad: list[BadRow]) -> None:
    attr = features(schema.edge, table, bad) if schema.edge else None
    weight = features([Column("weight")], table, bad).squeeze(1) if schema.weighted else None
    for name, rows in table.rows_of_graphs().items():
        names: list[str] = graphs[name].node_name if name in graphs else []
        ends = _ends(table, rows.tolist(), {node: i for i, node in enumerate(names)}, bad)
        if ends is None:
            continue
        graph, index = graphs[name], torch.from_numpy(rows)
        # Where each edge of the graph stands in the table: its reverse stands there as well.
        graph.edge_index, row = (ends, index) if schema.directed else _both_directions(ends, index, len(names))
        if attr is not None:
            graph.edge_attr = attr[row]
        if weight is not None:
            graph.edge_weight = weight[row]


def _ends(table: EdgeTable, rows: list[int], index: dict[str, int], bad: list[BadRow]) -> Tensor | None:
    """The `edge_index` of these rows; `None` if they have unknown nodes."""
    names = (map(end.__getitem__, rows) for end in (table.source, table.target))
    ends = np.stack([np.fromiter(map(index.get, end, repeat(-1)), np.int64, len(rows)) for end in names])
    if (ends >= 0).all():
        return torch.from_numpy(ends)
    for row in rows:
        for node in (table.source[row], table.target[row]):
            if node and node not in index:
                bad.append(BadRow(table.path, table.lines[row], f"node {node!r} is not in the node table"))
    return None


def _both_directions(ends: Tensor, row: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Adds the reverse of every edge that is no self-loop, unless the file has it already.

    The second edge from u to v is matched by the second edge from v to u, and so on: the pair has in each direction as
    many edges as the file has in the direction that it has more of.
    """
    source, target = ends
    ahead, back = source * num_nodes + target, target * num_nodes + source
    known = torch.cat([ahead, back]).unique(return_inverse=True)[1]
    place, other = known[: row.numel()], known[row.numel() :]  # of an edge and of its reverse among all ends
    times = _nth(place)
    largest = int(times.max()) + 1 if times.numel() else 1
    there = torch.isin(other * largest + times, place * largest + times)
    missing = (source != target) & ~there
    return torch.cat([ends, ends.flip(0)[:, missing]], dim=1), torch.cat([row, row[missing]])


def _nth(values: Tensor) -> Tensor:
    """For each value how many equal ones come before it."""
    order = values.argsort(stable=True)
    ordered = values[order]
    first = torch.searchsorted(ordered, ordered)
    nth = torch.empty_like(order)
    nth[order] = torch.arange(order.numel()) - first
    return nth


def _add_graph_labels(graphs: dict[str, Data], tables: Tables, label: Column, bad: list[BadRow]) -> None:
    if not any(label.name in table.columns for table in tables.graphs):
        return
    y: dict[str, Tensor] = {}
    for table in tables.graphs:
        y |= dict(zip(table.graph, labels(label, table, bad).split(1), strict=True))
    dtype = torch.float if label.categories is None else torch.long
    for name, graph in graphs.items():
        graph.y = y.get(name, torch.tensor([unknown(label)], dtype=dtype))
