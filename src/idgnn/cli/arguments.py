"""Arguments that several verbs share: a dataset by name or files. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from idgnn.graphs.sources import FileSource

if TYPE_CHECKING:
    from idgnn.graphs.dataset import Dataset
    from idgnn.graphs.schema import Schema

File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
Name = Annotated[str | None, tyro.conf.arg(metavar="[NAME]")]
Memory = Annotated[str | None, tyro.conf.arg(metavar="SIZE")]
Output = Annotated[Path, tyro.conf.arg(metavar="FILE", aliases=["-o"])]


@dataclass(frozen=True)
class NewFiles:
    """Your own graphs, in place of a dataset by name; columns are read as for training."""

    edges: File = None
    """A table of edges (CSV, TSV, text, .gz, Parquet), a GraphML or GML file, or a folder of them, a graph each."""
    nodes: File = None
    """A table of nodes: the node in a column called id, node or name, or else in the first; features in the others."""
    graphs: File = None
    """A table of graphs: the graph in the first column."""

    def source(self, dataset: str | None) -> str | FileSource:
        """The one of the two that was given; refuses both and neither."""
        if (dataset is None) == (self.edges is None):
            given = "neither a dataset nor files" if dataset is None else "both a dataset and files"
            raise ValueError(
                f"{given} were given, expected one of them: the name of a dataset (idgnn data lists them), or --edges "
                "FILE."
            )
        if dataset is not None:
            return dataset
        # The fields of this class, and of its subclass, are called as those of FileSource.
        return FileSource(**{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True)
class OwnFiles(NewFiles):
    """Your own graphs, in place of a dataset by name."""

    label: Name = None
    """The column that is predicted."""
    directed: bool = False
    """Edges have one direction; otherwise each is read in both."""
    ignore: tuple[str, ...] = ()
    """Columns that are not features."""
    categorical: tuple[str, ...] = ()
    """Features that are categories although they are numbers, such as codes of types; text always is."""


def read(source: str | FileSource, schema: Schema | None = None) -> Dataset:
    """The graphs of a dataset or of files; columns become numbers as in the schema, if there is one."""
    from idgnn.graphs.files.read import read_files
    from idgnn.graphs.load import load

    return load(source) if isinstance(source, str) else read_files(source, schema)
