"""Reads a user's own graphs from files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.files.bad_rows import BadRow, BadRows
from idgnn.graphs.files.build import build_graphs
from idgnn.graphs.files.find_schema import check_schema, find_schema
from idgnn.graphs.files.gather import gather
from idgnn.graphs.files.text import name_and_kind
from idgnn.graphs.repeats import num_repeats
from idgnn.graphs.schema import Schema
from idgnn.graphs.settings import FileSource


class DuplicateEdgesWarning(UserWarning):
    """Some edges of a file are there more than once."""


def read_files(source: FileSource, schema: Schema | None = None, *, quantity: bool | None = None) -> Dataset:
    """Reads graphs from tables (`.csv`, `.tsv`, `.parquet`, and `.txt`, `.edges`, `.edgelist`), GraphML or GML.

    Text is UTF-8, compressed (`.gz`) or not, and lines that start with `#` or `%` are comments. Which columns and
    headers a table has is said at :func:`~idgnn.graphs.files.tables.read_edge_table`. Names of nodes and graphs are
    text, so that `1` and `01` are two. A column `graph` tells many graphs in one table apart, and each has nodes of its
    own; in a folder, the name of a file without its suffix is that of its graph.

    - Nodes come in the order of the node table, which must have them all and may have isolated ones. Without it they
      are sorted if all names are whole numbers, and come as they first appear in the edges if not.
    - A column is a number if all its cells are, and is otherwise one-hot coded. A label is a quantity if its cells are
      numbers, some with a fraction or more than 50 different ones; otherwise classes. A label that is empty or `NA` is
      unknown. With `quantity` it is said what the label is.
    - Edges of an undirected graph get their reverses, unless the file has them already. Self-loops are entered once and
      duplicates are kept.

    With the `schema` of an earlier `Dataset`, columns become the same numbers as they did then: the features must be
    there, further columns are left out, and so may be the label; `label`, `directed` and `ignore` play no part.

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
    tables = gather(source.edges, source.nodes, source.graphs, directed, bad)
    if schema is None:
        schema = find_schema(tables, source.label, source.ignore, directed, quantity)
    else:
        check_schema(tables, schema)
    graphs = build_graphs(tables, schema, bad)
    if bad:
        raise BadRows(bad)

    folder = source.edges.is_dir()
    found = {graph.graph_name for graph in graphs}
    for table in tables.edges:
        if not graphs or (folder and name_and_kind(table.path)[0] not in found):
            raise ValueError(f"{table.path} has no edges and no nodes. Add some, or list its nodes in a node table.")
    if schema.label is not None and schema.label.categories == ():
        raise ValueError(f"the label {schema.label.name!r} is empty everywhere. Fill in what is known.")
    _tell_of_duplicates(source.edges, graphs)
    return Dataset(source.edges.resolve().name if folder else name_and_kind(source.edges)[0], graphs, schema)


def _tell_of_duplicates(path: Path, graphs: Sequence[Data]) -> None:
    every, repeats = sum(graph.num_edges for graph in graphs), 0
    for graph in graphs:
        assert graph.edge_index is not None and graph.num_nodes is not None
        repeats += num_repeats(graph.edge_index, graph.num_nodes)
    if repeats:
        warnings.warn(
            f"some edges of {path} are there more than once ({repeats:,} of {every:,} entries are "
            "repeats), and count more than once in sums, degrees and walks. If they mean one edge, leave repeats out.",
            DuplicateEdgesWarning,
            stacklevel=3,
        )
