"""Which graphs: files and what their columns mean, and a selection by size. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path


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
    label: str | None = None
    """The column that is predicted: of the nodes, or of the graphs."""
    directed: bool = False
    """Whether edges have one direction; otherwise every edge is read in both."""
    ignore: tuple[str, ...] = ()
    """The columns that are not features."""
    categorical: tuple[str, ...] = ()
    """The features that are categories although they are written as numbers; text always is."""

    def __post_init__(self) -> None:
        for name in ("edges", "nodes", "graphs"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))
        for name in ("ignore", "categorical"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def absolute(self) -> FileSource:
        """The same files by absolute paths."""
        paths = {name: getattr(self, name) for name in ("edges", "nodes", "graphs")}
        return replace(self, **{name: None if path is None else path.absolute() for name, path in paths.items()})


@dataclass(frozen=True)
class Selection:
    """Which graphs of a dataset are used; all of them by default."""

    min_nodes: int = 0
    """Graphs with fewer nodes are left out."""
    min_edges: int = 0
    """Graphs with fewer edges (both directions counted) are left out; with smallest, they come last."""
    smallest: int | None = None
    """How many of the smallest of the others are used."""
