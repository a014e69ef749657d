"""Reads all files of a source into tables: one file, or a folder with one graph per file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from idgnn.graphs.files.headers import HeaderHints
from idgnn.graphs.files.networkx_files import NETWORKX_KINDS, read_networkx_file
from idgnn.graphs.files.tables import (
    EdgeTable,
    GraphTable,
    NodeTable,
    nodes_of_edges,
    read_edge_table,
    read_graph_table,
    read_node_table,
)
from idgnn.graphs.files.text import BadRow, name_and_kind
from idgnn.graphs.files.text_column import TextColumn
from idgnn.graphs.sources import FileSource

KINDS = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".mtx", ".parquet", *NETWORKX_KINDS)


@dataclass(frozen=True)
class SourceTables:
    """The tables of a source. Every graph has its nodes in one node table and its edges in at most one edge table."""

    edges: list[EdgeTable]
    nodes: list[NodeTable]
    graphs: list[GraphTable]
    pairs: list[EdgeTable]
    """Pairs of nodes with a label, if there are any."""


def gather(source: FileSource, directed: bool, bad: list[BadRow]) -> SourceTables:
    """Reads all files of a source: its edges are one, or a folder of files with one graph each."""
    edges, nodes, graphs = source.edges, source.nodes, source.graphs
    folder = edges.is_dir()
    tables = SourceTables([], [], [], [])
    for path in _files_of(edges, nodes, graphs) if folder else [edges]:
        if name_and_kind(path)[1] in NETWORKX_KINDS:
            if nodes is not None:
                raise ValueError(
                    f"{path} has its own nodes, and so has {nodes}. Leave the node table out, or convert the file."
                )
            edge_table, node_table, graph_table = read_networkx_file(path, directed)
            tables.edges.append(edge_table)
            tables.nodes.append(node_table)
            if graphs is None:
                tables.graphs.append(graph_table)
            continue
        table = read_edge_table(path, bad, _hints(source, "edges"))
        if folder and table.many:
            raise ValueError(
                f"{path} has a column 'graph', but in a folder each file is one graph. Read it on its own."
            )
        tables.edges.append(table)
        if nodes is None:
            tables.nodes.append(nodes_of_edges(table))
    if nodes is not None:
        one_graph = not folder and not tables.edges[0].many
        only_graph = name_and_kind(edges)[0] if one_graph else None
        ends = (end for table in tables.edges for end in (table.source, table.target))
        known = _is_one_of(ends)
        tables.nodes.append(read_node_table(nodes, only_graph, bad, _hints(source, "nodes"), known))
        if folder:
            _check_graphs_of_nodes(edges, tables, bad)
    if graphs is not None:
        known = _is_one_of(table.graph for table in (*tables.edges, *tables.nodes))
        tables.graphs.append(read_graph_table(graphs, bad, _hints(source, "graphs"), known))
        _check_graphs(tables, bad)
    if source.labeled_pairs is not None:
        tables.pairs.append(read_edge_table(source.labeled_pairs, bad, _hints(source, "labeled_pairs")))
    return tables


def _hints(source: FileSource, table: str) -> HeaderHints:
    given = True if table in source.header else False if table in source.no_header else None
    named = () if source.label is None or table == "edges" else (source.label,)  # edges have no labels
    return HeaderHints(given, (*named, *source.ignore, *source.categorical))


def _is_one_of(columns: Iterable[TextColumn]) -> Callable[[str], bool]:
    every = [column.distinct for column in columns]
    return lambda name: any(name in distinct for distinct in every)


def _files_of(folder: Path, nodes: Path | None, graphs: Path | None) -> list[Path]:
    tables = {path.resolve() for path in (nodes, graphs) if path is not None}
    files = sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and not path.name.startswith(".") and name_and_kind(path)[1] in KINDS
        if path.resolve() not in tables
    )
    if not files:
        raise ValueError(f"the folder {folder} has no file of graphs, expected one of {', '.join(KINDS)}, or with .gz.")
    first: dict[str, Path] = {}
    for path in files:
        other = first.setdefault(name_and_kind(path)[0], path)
        if other != path:
            raise ValueError(f"{other} and {path} would be graphs of one name. Rename or move one of them.")
    return files


def _check_graphs_of_nodes(folder: Path, tables: SourceTables, bad: list[BadRow]) -> None:
    known = {name_and_kind(table.path)[0] for table in tables.edges}
    for table in tables.nodes:
        for row in table.graph.rows_where(set(table.graph.distinct) - known - {""}):
            what = f"graph {table.graph[row]!r} is unknown: {folder} has no file of this name"
            bad.append(BadRow(table.path, table.lines[row], what))


def _check_graphs(tables: SourceTables, bad: list[BadRow]) -> None:
    """Every graph has one row in the graph table, and every row a graph."""
    [listed] = tables.graphs
    known, first = {"", *listed.graph.distinct}, set()
    for table in (*tables.edges, *tables.nodes):
        for graph, rows in table.rows_of_graphs().items():
            if graph not in first and graph not in known:
                what = f"graph {graph!r} is not in {listed.path}"
                bad.append(BadRow(table.path, table.lines[rows[0]], what))
            first.add(graph)
    seen: set[str] = set()
    for row, graph in enumerate(listed.graph.cells()):
        if graph and graph not in first:
            what = f"graph {graph!r} is unknown: no edge and no node belongs to it"
            bad.append(BadRow(listed.path, listed.lines[row], what))
        if graph in seen:
            bad.append(BadRow(listed.path, listed.lines[row], f"graph {graph!r} has a row already"))
        seen.add(graph)
