"""Which graphs: files and what their columns mean, and a selection by size. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from idgnn.choices import check_choices, check_counts

Missing = Literal["error", "mean", "zero", "indicator"]
TableName = Literal["edges", "nodes", "graphs", "labeled_pairs"]
PATHS = ("edges", "nodes", "graphs", "labeled_pairs")


@dataclass(frozen=True)
class FileSource:
    """The files that graphs are read from, and what their columns are for.

    See :func:`idgnn.graphs.files.read.read_files`.
    """

    edges: Path
    """A table of edges, a GraphML or GML file, or a folder of such files with one graph each."""
    nodes: Path | None = None
    """A table of nodes: the node in the first column, or one called `id`, `node` or `name`; the others are features."""
    graphs: Path | None = None
    """A table of graphs: the graph in the first column, or in one called `graph` or `id`; another may be the label."""
    labeled_pairs: Path | None = None
    """A table of pairs of nodes: source, target, graph if there are many, and the label that is predicted."""
    label: str | None = None
    """The column that is predicted: of the nodes, of the graphs, or of the pairs."""
    directed: bool = False
    """Whether edges have one direction; otherwise every edge is read in both."""
    ignore: tuple[str, ...] = ()
    """The columns that are not features."""
    categorical: tuple[str, ...] = ()
    """The features that are categories although they are written as numbers; text always is."""

    missing: Missing = "error"
    """A number that is not there: refused, replaced by the mean of the training part or by zero, or replaced by the
    mean with a further feature that says so."""
    header: tuple[TableName, ...] = ()
    """The tables whose first row names the columns; it is detected by default. `True` stands for all of them."""
    no_header: tuple[TableName, ...] = ()
    """The tables whose first row does not name the columns. `True` stands for all of them."""

    def __post_init__(self) -> None:
        for name in ("header", "no_header"):
            given = getattr(self, name)
            object.__setattr__(self, name, get_args(TableName) if given is True else tuple(given or ()))
        check_choices(self)
        _check_tables(self.header, self.no_header)
        for name in PATHS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))
        for name in ("ignore", "categorical"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def absolute(self) -> FileSource:
        """The same files by absolute paths."""
        paths = {name: getattr(self, name) for name in PATHS}
        return replace(self, **{name: None if path is None else path.absolute() for name, path in paths.items()})


def _check_tables(header: tuple[str, ...], no_header: tuple[str, ...]) -> None:
    tables = get_args(TableName)
    for name in (*header, *no_header):
        if name not in tables:
            raise ValueError(f"header names the table {name!r}, expected one of {', '.join(tables)}.")
    if both := set(header) & set(no_header):
        raise ValueError(f"{', '.join(sorted(both))} cannot be with and without a header. Leave one of the two out.")


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
