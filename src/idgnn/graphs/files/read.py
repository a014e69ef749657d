"""Reads a user's own graphs from files: tables first, then the graphs that they describe."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.files.columns import check_schema, features, find_schema, labels, unknown
from idgnn.graphs.files.gather import SourceTables, gather
from idgnn.graphs.files.tables import EdgeTable, NodeTable
from idgnn.graphs.files.text import BadRow, BadRows, name_and_kind
from idgnn.graphs.files.text_column import TextColumn
from idgnn.graphs.schema import ColumnSchema, Schema
from idgnn.graphs.sources import FileSource
from idgnn.graphs.structure import num_repeated_edges


class DuplicateEdgesWarning(UserWarning):
    """A file has some edges more than once."""


def read_files(source: FileSource, schema: Schema | None = None, *, quantity: bool | None = None) -> Dataset:
    """Reads graphs from tables (`.csv`, `.tsv`, `.parquet`, and `.txt`, `.edges`, `.edgelist`), GraphML or GML.

    Text is UTF-8, compressed (`.gz`) or not, and lines that start with `#` or `%` are comments. Which columns and
    headers a table has: see :func:`~idgnn.graphs.files.tables.read_edge_table`. Names of nodes and graphs are
    text, so that `1` and `01` are two. A column `graph` says which graph a row belongs to, and each graph has nodes of
    its own; in a folder, the name of a file without its suffix is that of its graph.

    - Nodes come in the order of the node table, which must have them all and may have isolated ones. Without it they
      are sorted if all names are whole numbers, and come as they first appear in the edges if not.
    - A column is a number if all its cells are, and is otherwise one-hot coded; numbers that are categories, such as
      codes of types, are named in `categorical`. A label is a quantity if its cells are numbers, some with a fraction
      or more than 50 different ones; otherwise classes. A label that is empty or `NA` is unknown. `quantity` says
      whether the label is one, if that is known.
    - Edges of an undirected graph get their reverses, unless the file has them already. Self-loops are entered once and
      duplicates are kept.

    With the `schema` of an earlier `Dataset`, columns become the same numbers as they did then: the features must be
    there, further columns are ignored, and the label may be absent; nothing but the paths of `source` is used.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     edges = Path(folder, "friends.txt")
        ...     _ = edges.write_text("Ann Bob")
        ...     [graph] = read_files(FileSource(edges)).graphs
        >>> graph.node_name, graph.edge_index.tolist()
        (['Ann', 'Bob'], [[0, 1], [1, 0]])

    Raises:
        BadRows: some rows cannot be used; it lists every one of all files.
        ValueError: a file or a column is missing, or cannot be read.
    """
    bad: list[BadRow] = []
    directed = source.directed if schema is None else schema.directed
    tables = gather(source, directed, bad)
    fitted = schema is not None
    if schema is None:
        schema = find_schema(tables, source, quantity)
    else:
        check_schema(tables, schema)
    graphs = _build_graphs(tables, schema, fitted, bad)
    if bad:
        raise BadRows(bad)

    folder = source.edges.is_dir()
    found = {graph.graph_name for graph in graphs}
    for table in tables.edges:
        if not graphs or (folder and name_and_kind(table.path)[0] not in found):
            raise ValueError(f"{table.path} has no edges and no nodes. Add some, or list its nodes in a node table.")
    if schema.label is not None and schema.label.categories == ():
        raise ValueError(f"the label {schema.label.name!r} is empty everywhere. Fill in the known ones.")
    _warn_of_duplicates(source.edges, graphs, directed)
    name = source.edges.resolve().name if folder else name_and_kind(source.edges)[0]
    every = (*tables.edges, *tables.nodes, *tables.graphs, *tables.pairs)
    headers = {table.path.name: table.header for table in every if table.header is not None}
    return Dataset(name, graphs, schema, headers=headers)


def _build_graphs(tables: SourceTables, schema: Schema, fitted: bool, bad: list[BadRow]) -> list[Data]:
    """The graphs, in the order in which the edges and then the nodes first mention them."""
    graphs: dict[str, Data] = {}
    label = schema.label if schema.label_of == "node" else None
    if label is not None and not any(label.name in table.columns for table in tables.nodes):
        label = None
    for table in tables.nodes:
        graphs |= _nodes(table, schema, label, fitted, bad)
    for table in tables.edges:
        _add_edges(graphs, table, schema, fitted, bad)
    for table in tables.pairs:
        _add_pairs(graphs, table, schema.label if schema.label_of == "pair" else None, bad)
    if schema.label is not None and schema.label_of == "graph":
        _add_graph_labels(graphs, tables, schema.label, bad)
    mentioned = dict.fromkeys(chain.from_iterable(table.graph.distinct for table in (*tables.edges, *tables.nodes)))
    return [graphs[name] for name in mentioned if name in graphs]


def _nodes(
    table: NodeTable, schema: Schema, label: ColumnSchema | None, fitted: bool, bad: list[BadRow]
) -> dict[str, Data]:
    """The graphs of a node table, still without edges."""
    x = features(schema.node, table, bad, fitted) if schema.node else torch.ones(len(table.node), 1)
    y = None if label is None else labels(label, table, bad)
    graphs = {}
    for name, rows in table.rows_of_graphs().items():
        index = torch.from_numpy(rows)
        graph = Data(x=x[index], edge_index=torch.zeros(2, 0, dtype=torch.long))
        if schema.edge:
            width = sum(column.width if fitted else column.read_width for column in schema.edge)
            graph.edge_attr = torch.zeros(0, width)
        if schema.weighted:
            graph.edge_weight = torch.zeros(0)
        if y is not None:
            graph.y = y[index]
        graph.node_name = TextColumn(table.node.codes[rows], table.node.distinct).cells()
        graph.graph_name = name
        graphs[name] = graph
        if len(set(graph.node_name)) < len(rows):
            _report_duplicate_nodes(table, rows, bad)
    return graphs


def _report_duplicate_nodes(table: NodeTable, rows: np.ndarray, bad: list[BadRow]) -> None:
    first: dict[str, int] = {}
    for row in rows.tolist():
        earlier = first.setdefault(table.node[row], row)
        if earlier != row and table.node[row]:
            what = f"node {table.node[row]!r} is there already, at {table.lines[earlier]}"
            bad.append(BadRow(table.path, table.lines[row], what))


def _add_edges(graphs: dict[str, Data], table: EdgeTable, schema: Schema, fitted: bool, bad: list[BadRow]) -> None:
    attr = features(schema.edge, table, bad, fitted) if schema.edge else None
    weight = features([ColumnSchema("weight")], table, bad).squeeze(1) if schema.weighted else None
    for name, rows in table.rows_of_graphs().items():
        names: list[str] = graphs[name].node_name if name in graphs else []
        ends = _ends(table, rows, {node: i for i, node in enumerate(names)}, bad)
        if ends is None:
            continue
        graph, index = graphs[name], torch.from_numpy(rows)
        # `row` is the row of the table that each edge comes from; a reverse comes from the same row.
        graph.edge_index, row = (ends, index) if schema.directed else _both_directions(ends, index, len(names))
        if attr is not None:
            graph.edge_attr = attr[row]
        if weight is not None:
            graph.edge_weight = weight[row]


def _ends(
    table: EdgeTable,
    rows: np.ndarray,
    index: dict[str, int],
    bad: list[BadRow],
    where: str = "is not in the node table",
) -> Tensor | None:
    """The `edge_index` of these rows; `None` if they have unknown nodes, which are said to be nowhere."""
    codes, every = table.ends
    whole = rows.size == codes.shape[1]
    codes = codes if whole else codes[:, rows]
    # Each name is looked up once. A small graph of a large table looks up its own names alone.
    if whole or rows.size > len(every):
        place = np.fromiter(map(index.get, every, repeat(-1)), np.int64, len(every))
        ends = place[codes]
    else:
        used, position = np.unique(codes, return_inverse=True)
        place = np.fromiter((index.get(every[code], -1) for code in used.tolist()), np.int64, used.size)
        ends = place[position.reshape(codes.shape)]
    unknown = ends < 0
    if not unknown.any():
        return torch.from_numpy(ends)
    for row in rows[unknown.any(0)].tolist():
        for node in (table.source[row], table.target[row]):
            if node and node not in index:
                bad.append(BadRow(table.path, table.lines[row], f"node {node!r} {where}"))
    return None


def _add_pairs(graphs: dict[str, Data], table: EdgeTable, label: ColumnSchema | None, bad: list[BadRow]) -> None:
    """Adds `edge_label_index` and, if a label was named, `edge_label` to every graph."""
    if not table.many and len(graphs) != 1:
        raise ValueError(
            f"{table.path} has no column 'graph', and there are {len(graphs)} graphs. Add the graph of each pair."
        )
    y = None if label is None else labels(label, table, bad)
    rows_of = table.rows_of_graphs()
    if not table.many:
        rows_of = dict.fromkeys(graphs, np.arange(len(table.source)))
    for name in rows_of:
        if name and name not in graphs:
            what = f"there is no graph {name!r}: no edge and no node belongs to it"
            bad.append(BadRow(table.path, table.lines[rows_of[name][0]], what))
    for name, graph in graphs.items():
        rows = rows_of.get(name, np.zeros(0, np.int64))
        index = {node: i for i, node in enumerate(graph.node_name)}
        ends = _ends(table, rows, index, bad, f"is not in the graph {name!r}" if table.many else "is not in the graph")
        graph.edge_label_index = torch.zeros(2, 0, dtype=torch.long) if ends is None else ends
        if y is not None:
            graph.edge_label = y[torch.from_numpy(rows)]
            if ends is not None:
                _report_contradictions(table, rows, ends, graph.edge_label, len(index), bad)


def _report_contradictions(
    table: EdgeTable, rows: np.ndarray, ends: Tensor, label: Tensor, num_nodes: int, bad: list[BadRow]
) -> None:
    """Reports pairs that have two known labels: of those in training and those held out, one would be wrong."""
    known = (~label.isnan() if label.is_floating_point() else label >= 0).nonzero().flatten()
    pair, place = torch.unique(ends[0, known] * num_nodes + ends[1, known], return_inverse=True)
    first = torch.full((pair.numel(),), known.numel()).scatter_reduce(0, place, torch.arange(known.numel()), "amin")
    earlier = known[first][place]  # the first row of the same pair
    for row, before in zip(known.tolist(), earlier.tolist(), strict=True):
        if label[row] != label[before]:
            number, other = int(rows[row]), table.lines[int(rows[before])]
            what = f"the pair {table.source[number]!r}, {table.target[number]!r} has another label at {other}"
            bad.append(BadRow(table.path, table.lines[number], what))


def _both_directions(ends: Tensor, row: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Adds the reverse of every edge that is no self-loop, unless the file has it already.

    The second edge from u to v is matched by the second edge from v to u, and so on: the pair has in each direction as
    many edges as the file has in the direction that it has more of.
    """
    source, target = ends
    pair = torch.minimum(source, target) * num_nodes + torch.maximum(source, target)
    key, order = (2 * pair + (source > target)).sort(stable=True)  # the two directions of a pair are neighbors
    kind, number, times = torch.unique_consecutive(key, return_inverse=True, return_counts=True)
    reverse = torch.zeros_like(times)  # how many edges go the other way
    both = ((kind[1:] == kind[:-1] + 1) & (kind[:-1] % 2 == 0)).nonzero().flatten()
    reverse[both], reverse[both + 1] = times[both + 1], times[both]
    nth = torch.arange(row.numel()) - (times.cumsum(0) - times)[number]  # among the edges with the same ends
    alone = order[nth >= reverse[number]].sort().values
    missing = alone[source[alone] != target[alone]]
    return torch.cat([ends, ends.flip(0)[:, missing]], dim=1), torch.cat([row, row[missing]])


def _add_graph_labels(graphs: dict[str, Data], tables: SourceTables, label: ColumnSchema, bad: list[BadRow]) -> None:
    if not any(label.name in table.columns for table in tables.graphs):
        return
    y: dict[str, Tensor] = {}
    for table in tables.graphs:
        y |= dict(zip(table.graph.cells(), labels(label, table, bad).split(1), strict=True))
    dtype = torch.float if label.categories is None else torch.long
    for name, graph in graphs.items():
        graph.y = y.get(name, torch.tensor([unknown(label)], dtype=dtype))


def _warn_of_duplicates(path: Path, graphs: Sequence[Data], directed: bool) -> None:
    every, repeats = sum(graph.num_edges for graph in graphs), 0
    for graph in graphs:
        assert graph.edge_index is not None and graph.num_nodes is not None
        edges, times = graph.edge_index, 1
        if not directed:  # both directions are alike
            repeats += num_repeated_edges(edges[:, edges[0] == edges[1]], graph.num_nodes)
            edges, times = edges[:, edges[0] < edges[1]], 2
        repeats += times * num_repeated_edges(edges, graph.num_nodes)
    if repeats:
        warnings.warn(
            f"some edges of {path} are there more than once ({repeats:,} of {every:,} entries are "
            "repeats), and count more than once in sums, degrees and walks. If they mean one edge, leave repeats out.",
            DuplicateEdgesWarning,
            stacklevel=3,
        )
