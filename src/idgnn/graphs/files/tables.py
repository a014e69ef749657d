"""Tables of edges, of nodes and of graphs: which of their columns name nodes and graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from idgnn.graphs.files.arrow_table import whole_numbers
from idgnn.graphs.files.headers import PAIRS, HeaderHints, names_of_edges, names_of_rows
from idgnn.graphs.files.text import BadRow, name_and_kind, too_few_columns
from idgnn.graphs.files.text_column import TextColumn, joint_codes, rows_of_codes
from idgnn.graphs.files.text_table import TextTable, read_table

LONGEST_WHOLE_NUMBER = 18  # digits that 64 bits hold


@dataclass(frozen=True, kw_only=True)
class GraphTable(TextTable):
    """One row per graph."""

    graph: TextColumn

    def rows_of_graphs(self) -> dict[str, np.ndarray]:
        """The rows that belong to each graph, in their order; the graphs in the order of their first rows."""
        names = self.graph.distinct
        return dict(zip(names, rows_of_codes(self.graph.codes, len(names)), strict=True))


@dataclass(frozen=True, kw_only=True)
class NodeTable(GraphTable):
    """One row per node, and the graph that it belongs to."""

    node: TextColumn


@dataclass(frozen=True, kw_only=True)
class EdgeTable(GraphTable):
    """One row per edge, and the graph that it belongs to. A column of weights is called `weight`."""

    source: TextColumn
    target: TextColumn
    many: bool
    """Whether a column says which graph an edge belongs to; otherwise all belong to one."""

    @cached_property
    def ends(self) -> tuple[np.ndarray, list[str]]:
        """Source and target of every row, `[2, rows]`, as places in the list of all names."""
        return joint_codes(self.source, self.target)


def read_edge_table(path: Path, bad: list[BadRow], hints: HeaderHints = HeaderHints()) -> EdgeTable:  # noqa: B008
    """Reads a table of edges.

    Their ends are the columns `source` and `target` (or `src` and `dst`, `from` and `to`, `u` and `v`), or else the
    first two. The columns `graph` and `weight` have their own meaning, and all others are features. Upper and lower
    case are the same in these names. Without a header the third column is the weight; whether there is one is decided
    by :func:`~idgnn.graphs.files.headers.names_of_edges`.
    """
    table = read_table(path, lambda first, below: names_of_edges(path, first, below, hints), bad)
    columns = dict(table.columns)
    graph, weight = _take(columns, "graph"), _take(columns, "weight")
    if len(columns) < 2:
        raise too_few_columns(path, table.columns, "at least a source and a target")
    pair = next((pair for pair in PAIRS if set(pair) <= {name.lower() for name in columns}), None)
    source, target = (_take_key(table, columns, name) for name in pair or ("", ""))
    if weight is not None:
        columns["weight"] = weight
    _require_text(table, {"source": source, "target": target, "graph": graph}, bad)
    return EdgeTable(
        path=path,
        lines=table.lines,
        columns=columns,
        header=table.header,
        source=source,
        target=target,
        graph=TextColumn.constant(name_and_kind(path)[0], len(source)) if graph is None else graph,
        many=graph is not None,
    )


def read_node_table(
    path: Path, only_graph: str | None, bad: list[BadRow], hints: HeaderHints, known: Callable[[str], bool]
) -> NodeTable:
    """Reads a table of nodes: the node is the first column called `id`, `node` or `name`, or else the first column.

    The column `graph` says which graph a node belongs to, unless there is `only_graph`. `known` says whether a node is
    the end of an edge; see :func:`~idgnn.graphs.files.headers.names_of_rows`.
    """
    keys = ("id", "node", "name")
    table = read_table(path, lambda first, below: names_of_rows(path, first, below, hints, keys, known), bad)
    columns = dict(table.columns)
    graph = _take(columns, "graph")
    if (graph is None) != (only_graph is not None):
        if graph is None:
            raise ValueError(f"{path} has no column 'graph', and there are many graphs. Add the graph of each node.")
        raise ValueError(f"{path} has a column 'graph', and the edges have none. Add it to them, or remove it here.")
    node = _take_key(table, columns, *keys)
    _require_text(table, {"node": node, "graph": graph}, bad)
    return NodeTable(
        path=path,
        lines=table.lines,
        columns=columns,
        header=table.header,
        node=node,
        graph=TextColumn.constant(only_graph or "", len(node)) if graph is None else graph,
    )


def read_graph_table(path: Path, bad: list[BadRow], hints: HeaderHints, known: Callable[[str], bool]) -> GraphTable:
    """Reads a table of graphs: the graph is the first column called `graph` or `id`, or else the first column."""
    keys = ("graph", "id")
    table = read_table(path, lambda first, below: names_of_rows(path, first, below, hints, keys, known), bad)
    columns = dict(table.columns)
    graph = _take_key(table, columns, *keys)
    _require_text(table, {"graph": graph}, bad)
    return GraphTable(path=path, lines=table.lines, columns=columns, header=table.header, graph=graph)


def nodes_of_edges(edges: EdgeTable) -> NodeTable:
    """The nodes of graphs without a node table: sorted if all are whole numbers, or else as they first appear."""
    codes, every = edges.ends
    nodes, graphs = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    value = whole_numbers(every, LONGEST_WHOLE_NUMBER)
    for number, rows in enumerate(edges.rows_of_graphs().values()):
        found = _first_mentions(codes[:, rows].T.ravel())  # source, target, source, target, ...
        if value is not None:
            found = found[np.argsort(value[found], kind="stable")]
        elif edges.many:
            own = whole_numbers([every[code] for code in found], LONGEST_WHOLE_NUMBER)
            found = found if own is None else found[np.argsort(own, kind="stable")]
        nodes.append(found)
        graphs.append(np.full(found.size, number))
    # The lines are never shown: no row of a table without columns is bad.
    node = TextColumn(np.concatenate(nodes), every)
    graph = TextColumn(np.concatenate(graphs), edges.graph.distinct)
    return NodeTable(path=edges.path, lines=range(1, len(node) + 1), columns={}, node=node, graph=graph)


def _first_mentions(codes: np.ndarray) -> np.ndarray:
    """The different codes in the order in which they first appear: linear in their number and the largest of them."""
    if codes.size * 8 < (int(codes.max()) if codes.size else 0):  # one small graph of many
        return np.array(list(dict.fromkeys(codes.tolist())), np.int64)
    first = np.full(int(codes.max()) + 1 if codes.size else 0, codes.size)
    first[codes[::-1]] = np.arange(codes.size)[::-1]  # of equal codes, the last one written is the first
    place = np.sort(first)
    return codes[place[: np.searchsorted(place, codes.size)]]


def _take(columns: dict[str, TextColumn], *names: str) -> TextColumn | None:
    """Removes the first column with one of the names, in any case, from `columns`; `None` if there is none."""
    wanted = {name.lower() for name in names}
    found = next((name for name in columns if name.lower() in wanted), None)
    return None if found is None else columns.pop(found)


def _take_key(table: TextTable, columns: dict[str, TextColumn], *names: str) -> TextColumn:
    """The same, but the first column if there is none."""
    if not columns:
        raise ValueError(f"{table.path} has no column {' or '.join(map(repr, names))}. Add it, with a header.")
    key = _take(columns, *names)
    return columns.pop(next(iter(columns))) if key is None else key


def _require_text(table: TextTable, keys: dict[str, TextColumn | None], bad: list[BadRow]) -> None:
    for name, cells in keys.items():
        if cells is not None and "" in cells.distinct:
            bad.extend(BadRow(table.path, table.lines[row], f"the {name} is empty") for row in cells.rows_where([""]))
