"""Graphs and nodes by their names, and pairs of nodes from a table. Imports PyTorch when it is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data


@dataclass(frozen=True)
class PairRows:
    """Pairs of nodes, in the order of the file."""

    owner: Tensor
    """`[pairs]`: the number of the graph of each pair."""
    nodes: Tensor
    """`[2, pairs]`: source and target, as numbers of the nodes within their graph."""


def graph_places(graphs: Sequence[Data]) -> dict[str, int]:
    """The number of each graph by its name; graphs of a dataset by name are called `0`, `1`, ..."""
    return {str(graph.get("graph_name", number)): number for number, graph in enumerate(graphs)}


def node_places(graph: Data) -> dict[str, int]:
    """The number of each node by its name; nodes of a dataset by name are called `0`, `1`, ..."""
    names = graph.get("node_name")
    return {str(name): i for i, name in enumerate(range(graph.num_nodes or 0) if names is None else names)}


def expected_names(known: Iterable[str], most: int = 5) -> str:
    """The first names, for an error message."""
    names = list(known)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"one of {', '.join(map(repr, islice(names, most)))}{more}" if names else "none at all"


def read_pairs(path: Path, graphs: Sequence[Data]) -> list[Tensor]:
    """The pairs of nodes of a table: for each graph `[2, pairs]`, in the order of the file.

    See :func:`read_pair_rows`, which keeps the order over all graphs.
    """
    import torch

    rows = read_pair_rows(path, graphs)
    order = rows.owner.argsort(stable=True)
    sizes = torch.bincount(rows.owner, minlength=len(graphs)).tolist()
    return list(rows.nodes[:, order].split(sizes, dim=1))


def read_pair_rows(path: Path, graphs: Sequence[Data]) -> PairRows:
    """Reads a table with the columns source and target and, if there are many graphs, graph.

    Graphs and nodes have the names of the user's files; those of a dataset by name are numbers, from 0. Every bad row
    is reported, in one :class:`idgnn.graphs.files.text.BadRows`.
    """
    import torch

    from idgnn.graphs.files.tables import read_edge_table
    from idgnn.graphs.files.text import BadRow, BadRows

    bad: list[BadRow] = []
    table = read_edge_table(path, bad)
    if not table.many and len(graphs) != 1:
        raise ValueError(
            f"{path} has no column 'graph', and there are {len(graphs)} graphs. Add the graph of each pair."
        )
    graph_of = graph_places(graphs) if table.many else dict.fromkeys(table.graph.distinct, 0)
    node_of: dict[int, dict[str, int]] = {}  # for each graph that a row names
    owner: list[int] = []
    ends: list[tuple[int, int]] = []
    rows = zip(table.graph.cells(), table.source.cells(), table.target.cells(), strict=True)
    for row, (name, source, target) in enumerate(rows):
        if name not in graph_of:
            if name:  # an empty cell has been reported already, here and below
                what = f"there is no graph {name!r}, expected {expected_names(graph_of)}"
                bad.append(BadRow(path, table.lines[row], what))
            continue
        graph = graph_of[name]
        if graph not in node_of:
            node_of[graph] = node_places(graphs[graph])
        known = node_of[graph]
        for node in (source, target):
            if node and node not in known:
                what = f"there is no node {node!r}, expected {expected_names(known)}"
                bad.append(BadRow(path, table.lines[row], what))
        owner.append(graph)
        ends.append((known.get(source, -1), known.get(target, -1)))
    if bad:
        raise BadRows(bad)
    if not owner:
        raise ValueError(f"{path} has no pairs, expected at least one row. Add some.")
    return PairRows(torch.tensor(owner), torch.tensor(ends).t())
