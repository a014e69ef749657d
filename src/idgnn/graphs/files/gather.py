"""Reads all files of a source into tables: one file, or a folder with one graph per file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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

KINDS = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".mtx", ".parquet", *NETWORKX_KINDS)


@dataclass(frozen=True)
class SourceTables:
    """The tables of a source. Every graph has its nodes in one node table and its edges in at most one edge table."""

    edges: list[EdgeTable]
    nodes: list[NodeTable]
    graphs: list[GraphTable]


def gather(edges: Path, nodes: Path | None, graphs: Path | None, directed: bool, bad: list[BadRow]) -> SourceTables:
    """Reads all files: `edges` is one, or a folder of files with one graph each."""
    folder = edges.is_dir()
    tables = SourceTables([], [], [])
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
        table = read_edge_table(path, bad)
        if folder and table.many:
            raise ValueError(
                f"{path} has a column 'graph', but in a folder each file is one graph. Read it on its own."
            )
        tables.edges.append(table)
        if nodes is None:
            tables.nodes.append(nodes_of_edges(table))
    if nodes is not None:
        one_graph = not folder and not tables.edges[0].many
        tables.nodes.append(read_node_table(nodes, name_and_kind(edges)[0] if one_graph else None, bad))
        if folder:
            _check_graphs_of_nodes(edges, tables, bad)
    if graphs is not None:
        tables.graphs.append(read_graph_table(graphs, bad))
        _check_graphs(tables, bad)
    return tables


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
        for line, graph in zip(table.lines, table.graph, strict=True):
            if graph and graph not in known:
                bad.append(BadRow(table.path, line, f"graph {graph!r} is unknown: {folder} has no file of this name"))


def _check_graphs(tables: SourceTables, bad: list[BadRow]) -> None:
    """Every graph has one row in the graph table, and every row a graph."""
    [listed] = tables.graphs
    first: dict[str, BadRow] = {}
    for table in (*tables.edges, *tables.nodes):
        for graph, rows in table.rows_of_graphs().items():
            what = f"graph {graph!r} is not in {listed.path}"
            first.setdefault(graph, BadRow(table.path, table.lines[rows[0]], what))
    known, seen = {"", *listed.graph}, set()
    bad.extend(row for graph, row in first.items() if graph not in known)
    for line, graph in zip(listed.lines, listed.graph, strict=True):
        if graph and graph not in first:
            bad.append(BadRow(listed.path, line, f"graph {graph!r} is unknown: no edge and no node belongs to it"))
        if graph in seen:
            bad.append(BadRow(listed.path, line, f"graph {graph!r} has a row already"))
        seen.add(graph)
