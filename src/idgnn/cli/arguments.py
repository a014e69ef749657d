"""Arguments that several verbs share: a dataset by name or files. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from idgnn.graphs.sources import FileSource, Missing, TableName

if TYPE_CHECKING:
    from idgnn.graphs.dataset import Dataset
    from idgnn.graphs.schema import Schema

File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
Name = Annotated[str | None, tyro.conf.arg(metavar="[NAME]")]
Memory = Annotated[str | None, tyro.conf.arg(metavar="SIZE")]


def _tables(words: list[str]) -> tuple[str, ...]:
    """The tables that are named, or all of them."""
    for word in words:
        if word not in get_args(TableName):
            raise ValueError(f"{word!r} was given, expected some of {', '.join(get_args(TableName))}, or nothing.")
    return tuple(words) or get_args(TableName)


Tables = Annotated[
    tuple[TableName, ...],
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="[TABLE ...]",
        instance_from_str=_tables,
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=list,
    ),
]
Output = Annotated[Path, tyro.conf.arg(metavar="FILE", aliases=["-o"])]


def changed(
    given: Any, *, only: Collection[str] = (), without: Collection[str] = (), written: Collection[str] = ()
) -> list[str]:
    """The options among the fields of a dataclass that were given: `--window-years`.

    Those are options that are not at their defaults, and those that were `written` on the command line with any value.
    `only` and `without` name the fields that are looked at; all unless given.
    """
    looked_at = (each for each in fields(given) if each.name not in without and (not only or each.name in only))
    names = {f"--{each.name.replace('_', '-')}": each for each in looked_at}
    return [name for name, each in names.items() if name in written or getattr(given, each.name) != default_of(each)]


def options_of(arguments: Sequence[str]) -> frozenset[str]:
    """The options that were written, with whatever value.

    Example:
        >>> sorted(options_of(["train", "--batch_size=4", "--no-compile", "--lr", "-1"]))
        ['--batch-size', '--compile', '--lr']
    """
    names = (each.partition("=")[0].replace("_", "-") for each in arguments if each.startswith("--"))
    return frozenset(f"--{name.removeprefix('--').removeprefix('no-')}" for name in names)


def default_of(field: Field[Any]) -> Any:
    """The default of a field, whichever way it is given."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def check_unused(options: list[str], condition: str) -> None:
    """Refuses options that have no effect: a result would look as if they mattered."""
    if options:
        has, those = ("has", "it") if len(options) == 1 else ("have", "them")
        raise ValueError(f"{', '.join(options)} {has} no effect {condition}. Leave {those} out.")


@dataclass(frozen=True)
class NewFiles:
    """Your own graphs, in place of a dataset by name; columns are read as for training, and edges have one direction
    if the run was trained with --directed."""

    edges: File = None
    """A table of edges (CSV, TSV, text, MatrixMarket, Parquet; compressed by gzip or not), a GraphML or GML file, or a
    folder of them, a graph each."""
    nodes: File = None
    """A table of nodes: the node in a column called id, node or name, or else in the first; features in the others."""
    graphs: File = None
    """A table of graphs: the graph in the first column."""
    header: Tables = ()
    """The first row names the columns: of all tables, or of those that are listed. By default it is detected."""
    no_header: Tables = ()
    """The first row does not name the columns: of all tables, or of those that are listed."""

    def source(self, dataset: str | None) -> str | FileSource:
        """The one of the two that was given; refuses both and neither."""
        if (dataset is None) == (self.edges is None):
            given = "neither a dataset nor files" if dataset is None else "both a dataset and files"
            raise ValueError(
                f"{given} were given, expected one of them: the name of a dataset (idgnn data lists them), or --edges "
                "FILE."
            )
        if dataset is not None:
            check_unused(changed(self), f"with a dataset by name ({dataset}): files have options of their own")
            return dataset
        # The fields of this class, and of its subclass, are called as those of FileSource.
        return FileSource(**{each.name: getattr(self, each.name) for each in fields(self)})


def check_no_graphs(dataset: str | None, files: NewFiles) -> None:
    """Refuses graphs beside tables."""
    if dataset is not None or changed(files):
        raise ValueError("--tables was given beside a dataset or files of graphs. Leave one of them out.")


@dataclass(frozen=True)
class OwnFiles(NewFiles):
    """Your own graphs, in place of a dataset by name."""

    labeled_pairs: File = None
    """A table of pairs of nodes, for pair-classification: source, target, the label, and graph if there are many."""
    label: Name = None
    """The column that is predicted: of the nodes, of the graphs or of the pairs."""
    directed: bool = False
    """Edges have one direction; otherwise each is read in both."""
    ignore: tuple[str, ...] = ()
    """Columns that are not features."""
    categorical: tuple[str, ...] = ()
    """Features that are categories although they are numbers, such as codes of types; text always is."""
    missing: Missing = "error"
    """Numbers that are not there: an error, the mean over the training graphs, zero, or the mean and an indicator."""


def read(source: str | FileSource, schema: Schema | None = None) -> Dataset:
    """The graphs of a dataset or of files; columns become numbers as in the schema, if there is one.

    With a schema that has features, a dataset by name is refused, as files without these columns are.
    """
    from idgnn.graphs.files.columns import check_named_dataset
    from idgnn.graphs.files.read import read_files
    from idgnn.graphs.load import load

    if not isinstance(source, str):
        return read_files(source, schema)
    if schema is not None:
        check_named_dataset(source, schema)
    return load(source)
