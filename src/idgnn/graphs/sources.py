"""Which graphs: files and what their columns mean, and a selection by size. Imports no PyTorch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from idgnn.choices import check_choices, check_counts

Missing = Literal["error", "mean", "zero", "indicator"]
TableName = Literal["edges", "nodes", "graphs", "labeled_pairs"]
AnyPath = str | os.PathLike[str]
PATHS = ("edges", "nodes", "graphs", "labeled_pairs")


@dataclass(frozen=True, init=False)
class FileSource:
    """The files that graphs are read from, and what their columns are for.

    See :func:`idgnn.graphs.files.read.read_files`. Paths may be text: they are made `Path` here, once.

    Example:
        >>> FileSource("friends.csv", "people.csv", label="club").edges.suffix
        '.csv'
    """

    edges: Path
    """A table of edges, a GraphML or GML file, or a folder of such files with one graph each."""
    nodes: Path | None
    """A table of nodes: the node in the first column, or one called `id`, `node` or `name`; the others are features."""
    graphs: Path | None
    """A table of graphs: the graph in the first column, or in one called `graph` or `id`; another may be the label."""
    labeled_pairs: Path | None
    """A table of pairs of nodes: source, target, graph if there are many, and the label that is predicted."""
    label: str | None
    """The column that is predicted: of the nodes, of the graphs, or of the pairs."""
    directed: bool
    """Whether edges have one direction; otherwise every edge is read in both."""
    ignore: tuple[str, ...]
    """The columns that are not features."""
    categorical: tuple[str, ...]
    """The features that are categories although they are written as numbers; text always is."""
    missing: Missing
    """A number that is not there: refused, replaced by the mean over the training graphs or by zero, or replaced by
    the mean with a further feature that says so."""
    header: tuple[TableName, ...]
    """The tables whose first row names the columns; it is detected by default. `True` stands for all of them."""
    no_header: tuple[TableName, ...]
    """The tables whose first row does not name the columns. `True` stands for all of them."""

    # By hand, since it takes more types than the fields have.
    def __init__(
        self,
        edges: AnyPath,
        nodes: AnyPath | None = None,
        graphs: AnyPath | None = None,
        labeled_pairs: AnyPath | None = None,
        label: str | None = None,
        directed: bool = False,
        ignore: Sequence[str] = (),
        categorical: Sequence[str] = (),
        missing: Missing = "error",
        header: Sequence[TableName] | bool = (),
        no_header: Sequence[TableName] | bool = (),
    ) -> None:
        values = {
            "edges": _path(edges, "edges"),
            "nodes": None if nodes is None else _path(nodes, "nodes"),
            "graphs": None if graphs is None else _path(graphs, "graphs"),
            "labeled_pairs": None if labeled_pairs is None else _path(labeled_pairs, "labeled_pairs"),
            "label": label,
            "directed": directed,
            "ignore": _names(ignore, "ignore"),
            "categorical": _names(categorical, "categorical"),
            "missing": missing,
            "header": _tables(header, "header"),
            "no_header": _tables(no_header, "no_header"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        check_choices(self)
        if both := set(self.header) & set(self.no_header):
            raise ValueError(
                f"{', '.join(sorted(both))} cannot be with and without a header. Leave one of the two out."
            )

    def absolute(self) -> FileSource:
        """The same files by absolute paths."""
        paths = {name: getattr(self, name) for name in PATHS}
        return replace(self, **{name: None if path is None else path.absolute() for name, path in paths.items()})


def _path(given: AnyPath, name: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise ValueError(f"{name} is {given!r}, expected the path of a file.")
    return Path(given)


def _names(given: Sequence[str], name: str) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ValueError(f"{name} is {given!r}, expected several names: [{given!r}].")
    return tuple(given)


def _tables(given: Sequence[TableName] | bool, name: str) -> tuple[str, ...]:
    tables: tuple[TableName, ...] = get_args(TableName)
    if isinstance(given, bool):
        return tables if given else ()
    found = _names(given, name)
    for table in found:
        if table not in tables:
            raise ValueError(f"{name} names the table {table!r}, expected one of {', '.join(tables)}.")
    return found


@dataclass(frozen=True)
class Selection:
    """Which graphs of a dataset are used; all of them by default."""

    min_nodes: int = 0
    """Graphs with fewer nodes are left out."""
    min_edges: int = 0
    """Graphs with fewer edges (both directions counted) are left out; with smallest, they come last."""
    smallest: int | None = None
    """How many of the smallest of the others are used."""

    def __post_init__(self) -> None:
        check_counts(self, ("min_nodes", "min_edges"), least=0)
        if self.smallest is not None:
            check_counts(self, ("smallest",))
