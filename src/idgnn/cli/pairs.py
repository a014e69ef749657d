"""Pairs of nodes that a user asks about, from a table. Imports PyTorch when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from idgnn.graphs.files.bad_rows import BadRow
    from idgnn.graphs.files.tables import EdgeTable


@dataclass(frozen=True)
class PairRows:
    """Pairs of nodes, in the order of the file."""

    owner: Tensor
    """`[pairs]`: the number of the graph that each lies in."""
    nodes: Tensor
    """`[2, pairs]`: source and target, as numbers of the nodes within their graph."""

    def of_graphs(self, num_graphs: int) -> list[Tensor]:
        """The pairs of each graph, `[2, pairs of the graph]`, in the order of the file."""
        return [self.nodes[:, self.owner == graph] for graph in range(num_graphs)]


def read_pairs(path: Path, graphs: Sequence[Data]) -> list[Tensor]:
    """The pairs of nodes that a table names, for each graph `[2, pairs]`; see :func:`read_pair_rows`."""
    return read_pair_rows(path, graphs).of_graphs(len(graphs))


def read_pair_rows(path: Path, graphs: Sequence[Data]) -> PairRows:
    """Reads a table with the columns source and target and, if there are many graphs, graph.

    Graphs and nodes go by their names in the user's files; those of a dataset by name are numbers, from 0. Every bad
    row is reported, in one :class:`idgnn.graphs.files.bad_rows.BadRows`.
    """
    import torch

    from idgnn.graphs.files.bad_rows import BadRow, BadRows
    from idgnn.graphs.files.tables import read_edge_table

    bad: list[BadRow] = []
    table = read_edge_table(path, bad)
    if not table.many and len(graphs) != 1:
        raise ValueError(
            f"{path} has no column 'graph', and there are {len(graphs)} graphs. Say there which graph each pair is in."
        )
    owner = _owners(table, graphs, bad)
    known: dict[int, dict[str, int]] = {-1: {}}
    ends = []
    for row, (graph, *pair) in enumerate(zip(owner, table.source, table.target, strict=True)):
        if graph not in known:
            known[graph] = _places(graphs[graph])
        ends.append([known[graph].get(node, -1) for node in pair])
        if graph >= 0 and -1 in ends[-1]:
            unknown = [node for node, end in zip(pair, ends[-1], strict=True) if end < 0 and node]  # empty: said already
            what = [f"node {node!r} is not in the graph, {_nodes_of(graphs[graph])}" for node in unknown]
            bad.extend(BadRow(path, table.lines[row], each) for each in what)
    if bad:
        raise BadRows(bad)
    return PairRows(torch.tensor(owner, dtype=torch.long), torch.tensor(ends, dtype=torch.long).view(-1, 2).t())


def _owners(table: EdgeTable, graphs: Sequence[Data], bad: list[BadRow]) -> list[int]:
    """The number of the graph of each row; -1 where there is none of that name."""
    from idgnn.graphs.files.bad_rows import BadRow

    if not table.many:
        return [0] * len(table.lines)
    place = {str(graph.get("graph_name", number)): number for number, graph in enumerate(graphs)}
    some = ", ".join(map(repr, list(place)[:5])) + (f" and {len(place) - 5} more" if len(place) > 5 else "")
    unknown = [row for row, name in enumerate(table.graph) if name and name not in place]
    bad.extend(
        BadRow(table.path, table.lines[row], f"there is no graph {table.graph[row]!r}, expected one of {some}")
        for row in unknown
    )
    return [place.get(name, -1) for name in table.graph]


def _places(graph: Data) -> dict[str, int]:
    names = graph.get("node_name")
    return {name: i for i, name in enumerate(map(str, range(graph.num_nodes or 0)) if names is None else names)}


def _nodes_of(graph: Data) -> str:
    if graph.get("node_name") is None:
        return f"whose nodes are the numbers 0 to {(graph.num_nodes or 0) - 1}"
    return f"whose {graph.num_nodes} nodes begin with {', '.join(map(repr, graph.node_name[:3]))}"
