"""GraphML and GML files, read by networkx, as tables of their edges, their nodes and their graph."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import networkx as nx

from idgnn.graphs.files.tables import EdgeTable, GraphTable, NodeTable
from idgnn.graphs.files.text import name_and_kind, opened, text_lines
from idgnn.graphs.files.text_column import TextColumn

NETWORKX_KINDS = (".graphml", ".gml")


def read_networkx_file(path: Path, directed: bool) -> tuple[EdgeTable, NodeTable, GraphTable]:
    """Reads the one graph of a file. Attributes become columns, with the defaults of the file.

    The file does not decide whether the graph is directed: if it says so and `directed` is false, its edges are read in
    both directions, and so are the edges of an undirected file if `directed` is true.
    """
    graph = _read_graphml(path) if name_and_kind(path)[1] == ".graphml" else _read_gml(path)
    if directed and not graph.is_directed():
        graph = graph.to_directed()
    if graph.is_directed() and not directed:
        warnings.warn(
            f"the edges of {path} are directed, and are read in both directions. To keep their direction, train "
            "with directed=True (--directed).",
            stacklevel=2,
        )
    name = name_and_kind(path)[0]
    node_default, edge_default = graph.graph.pop("node_default", {}), graph.graph.pop("edge_default", {})

    nodes = [str(node) for node in graph.nodes]
    columns, partial = _columns([{**node_default, **attributes} for _, attributes in graph.nodes(data=True)])
    node_table = NodeTable(
        path=path,
        lines=[f"node {node!r}" for node in nodes],
        columns=columns,
        partial=partial,
        node=TextColumn.of(nodes),
        graph=TextColumn.constant(name, len(nodes)),
    )

    edges = [(str(source), str(target)) for source, target in graph.edges()]
    attributes = [{**edge_default, **attributes} for _, _, attributes in graph.edges(data=True)]
    for given in attributes:
        given.pop("id", None)  # the number of the edge, which is not a feature
    columns, partial = _columns(attributes)
    edge_table = EdgeTable(
        path=path,
        lines=[f"edge {source!r} to {target!r}" for source, target in edges],
        columns=columns,
        partial=partial,
        source=TextColumn.of(source for source, _ in edges),
        target=TextColumn.of(target for _, target in edges),
        graph=TextColumn.constant(name, len(edges)),
        many=False,
    )
    columns, _ = _columns([graph.graph])
    graph_table = GraphTable(path=path, lines=["graph"], columns=columns, graph=TextColumn.constant(name, 1))
    return edge_table, node_table, graph_table


def _read_graphml(path: Path) -> nx.Graph:
    with opened(path) as file:
        content = BytesIO(file.read())
    try:
        return nx.read_graphml(content)
    except Exception as error:  # networkx raises many types of errors for bad files
        raise ValueError(f"{path} cannot be read as GraphML: {error}. Export it again, or as a table.") from error


def _read_gml(path: Path) -> nx.Graph:
    lines = [line.rstrip("\r\n") for line in text_lines(path)]
    try:
        try:
            return nx.parse_gml(lines, label="label")
        except nx.NetworkXError:  # Nodes without labels, or with equal ones, are named by their ids.
            return nx.parse_gml(lines, label="id")
    except Exception as error:  # as above
        raise ValueError(f"{path} cannot be read as GML: {error}. Export it again, or as a table.") from error


def _columns(rows: Sequence[dict[str, Any]]) -> tuple[dict[str, TextColumn], dict[str, int]]:
    """Attributes as columns of text, and the number of missing cells of each; lists and the like count as missing."""
    plain = [{key: str(value) for key, value in row.items() if isinstance(value, str | int | float)} for row in rows]
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = {key: TextColumn.of(row.get(key, "") for row in plain) for key in keys}
    lacking = {key: sum(key not in row for row in plain) for key in columns}
    return columns, {key: count for key, count in lacking.items() if count}
