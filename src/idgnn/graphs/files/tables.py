"""Tables of edges, of nodes and of graphs: which of their columns name nodes and graphs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from idgnn.graphs.files.text import BadRow, name_and_kind, number
from idgnn.graphs.files.text_table import TextTable, read_table

PAIRS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
LONGEST_WHOLE_NUMBER = 18  # digits that 64 bits hold


@dataclass(frozen=True, kw_only=True)
class GraphTable(TextTable):
    """One row per graph."""

    graph: list[str]

    def rows_of_graphs(self) -> dict[str, np.ndarray]:
        """The rows that belong to each graph, in their order; the graphs in the order of their first rows."""
        position = {graph: i for i, graph in enumerate(dict.fromkeys(self.graph))}
        of = np.fromiter(map(position.__getitem__, self.graph), np.int64, len(self.graph))
        ends = np.bincount(of, minlength=len(position)).cumsum()
        return dict(zip(position, np.split(np.argsort(of, kind="stable"), ends[:-1]), strict=False))


@dataclass(frozen=True, kw_only=True)
class NodeTable(GraphTable):
    """One row per node, and the graph that it belongs to."""

    node: list[str]


@dataclass(frozen=True, kw_only=True)
class EdgeTable(GraphTable):
    """One row per edge, and the graph that it belongs to. A column of weights is called `weight`."""

    source: list[str]
    target: list[str]
    many: bool
    """Whether a column says which graph an edge belongs to; otherwise all belong to one."""


def read_edge_table(path: Path, bad: list[BadRow]) -> EdgeTable:
    """Reads a table of edges.

    Their ends are the columns `source` and `target` (or `src` and `dst`, `from` and `to`, `u` and `v`), or else the
    first two. The columns `graph` and `weight` have their own meaning, and all others are features. Upper and lower
    case are the same in these names. The first row is a header if it contains such a pair of names. Otherwise, a table
    of two columns has no header. A table of more columns has none if the cells from the third on are numbers, and then
    the third is the weight; it has one if there is a number below a text. All other tables are refused.
    """
    table = read_table(path, lambda first, second: _names_without_header(path, first, second), bad)
    _warn_of_header(table)
    columns = dict(table.columns)
    graph, weight = _take(columns, "graph"), _take(columns, "weight")
    if len(columns) < 2:
        raise ValueError(
            f"{path} has the columns {', '.join(map(repr, table.columns))}, expected at least a source and a target. "
            "The suffix .csv stands for commas and .tsv for tabs; with the suffix .txt the separator is detected."
        )
    pair = next((pair for pair in PAIRS if set(pair) <= {name.lower() for name in columns}), None)
    source, target = (_take_key(table, columns, name) for name in pair or ("", ""))
    if weight is not None:
        columns["weight"] = weight
    _require_text(table, {"source": source, "target": target, "graph": graph}, bad)
    return EdgeTable(
        path=path,
        lines=table.lines,
        columns=columns,
        source=source,
        target=target,
        graph=[name_and_kind(path)[0]] * len(source) if graph is None else graph,
        many=graph is not None,
    )


def read_node_table(path: Path, only_graph: str | None, bad: list[BadRow]) -> NodeTable:
    """Reads a table of nodes, with a header: the node is the first column called `id`, `node` or `name`, or the first.

    The column `graph` says which graph a node belongs to, unless there is `only_graph`.
    """
    table = read_table(path, lambda *_: None, bad)
    columns = dict(table.columns)
    graph = _take(columns, "graph")
    if (graph is None) != (only_graph is not None):
        if graph is None:
            raise ValueError(f"{path} has no column 'graph', and there are many graphs. Add the graph of each node.")
        raise ValueError(f"{path} has a column 'graph', and the edges have none. Add it to them, or remove it here.")
    node = _take_key(table, columns, "id", "node", "name")
    _require_text(table, {"node": node, "graph": graph}, bad)
    return NodeTable(
        path=path,
        lines=table.lines,
        columns=columns,
        node=node,
        graph=[only_graph or ""] * len(node) if graph is None else graph,
    )


def read_graph_table(path: Path, bad: list[BadRow]) -> GraphTable:
    """Reads a table of graphs, with a header: the graph is the first column called `graph` or `id`, or the first."""
    table = read_table(path, lambda *_: None, bad)
    columns = dict(table.columns)
    graph = _take_key(table, columns, "graph", "id")
    _require_text(table, {"graph": graph}, bad)
    return GraphTable(path=path, lines=table.lines, columns=columns, graph=graph)


def nodes_of_edges(edges: EdgeTable) -> NodeTable:
    """The nodes of graphs without a node table: sorted if all are whole numbers, or else as they first appear."""
    nodes: list[str] = []
    graphs: list[str] = []
    for graph, rows in edges.rows_of_graphs().items():
        sources, targets = (map(end.__getitem__, rows.tolist()) for end in (edges.source, edges.target))
        names = list(dict.fromkeys(chain.from_iterable(zip(sources, targets, strict=True))))
        if all(len(name) <= LONGEST_WHOLE_NUMBER and name.removeprefix("-").isdecimal() for name in names):
            names.sort(key=int)
        nodes += names
        graphs += [graph] * len(names)
    # The lines are never shown: no row of a table without columns is bad.
    return NodeTable(path=edges.path, lines=range(1, len(nodes) + 1), columns={}, node=nodes, graph=graphs)


def _names_without_header(path: Path, first: list[str], second: list[str] | None) -> list[str] | None:
    names = {cell.lower() for cell in first}
    if any(set(pair) <= names for pair in PAIRS):
        return None
    words = [i for i, cell in enumerate(first) if i >= 2 and number(cell) is None]
    if words:
        if second is None or any(i < len(second) and number(second[i]) is not None for i in words):
            return None
        raise ValueError(
            f"the first row of {path} ({', '.join(first[:4])}) may be a header or an edge. Add a header that names the "
            "ends source and target."
        )
    return ["source", "target", "weight", *(f"column {i}" for i in range(4, len(first) + 1))][: len(first)]


def _warn_of_header(table: TextTable) -> None:
    """Warns of a first row that may be an unrecognized header: two words that occur nowhere else."""
    ends = [table.columns.get("source", []), table.columns.get("target", [])]
    if not all(ends) or len(table.columns) > 2 or table.lines[0] != 1:
        return
    first, rest = [end[0] for end in ends], chain(ends[0][1:], ends[1][1:])
    if len(ends[0]) > 2 and all(number(name) is None for name in first) and not set(first) & set(rest):
        warnings.warn(
            f"{table.path} was read without a header: its first row, {first[0]!r} and {first[1]!r}, is an edge. If it "
            "is a header, call these columns source and target.",
            stacklevel=2,
        )


def _take(columns: dict[str, list[str]], *names: str) -> list[str] | None:
    """Removes the first column with one of the names, in any case, from `columns`; `None` if there is none."""
    wanted = {name.lower() for name in names}
    found = next((name for name in columns if name.lower() in wanted), None)
    return None if found is None else columns.pop(found)


def _take_key(table: TextTable, columns: dict[str, list[str]], *names: str) -> list[str]:
    """The same, but the first column if there is none."""
    if not columns:
        raise ValueError(f"{table.path} has no column {' or '.join(map(repr, names))}. Add it, with a header.")
    key = _take(columns, *names)
    return columns.pop(next(iter(columns))) if key is None else key


def _require_text(table: TextTable, keys: dict[str, list[str] | None], bad: list[BadRow]) -> None:
    for name, cells in keys.items():
        if cells is not None and "" in cells:
            empty = [line for line, cell in zip(table.lines, cells, strict=True) if not cell]
            bad.extend(BadRow(table.path, line, f"the {name} is empty") for line in empty)
