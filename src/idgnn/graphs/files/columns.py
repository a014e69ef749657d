"""Which columns of a user's tables are features and labels, of which kind they are, and the tensors they become."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from idgnn.graphs.files.gather import SourceTables
from idgnn.graphs.files.text import NOT_KNOWN, BadRow, number
from idgnn.graphs.files.text_column import TextColumn
from idgnn.graphs.files.text_table import TextTable
from idgnn.graphs.schema import ColumnSchema, Schema, standardize
from idgnn.graphs.sources import FileSource, Missing

MOST_CATEGORIES = 1000  # More are names or remarks rather than categories, and would make tables of gigabytes.
MOST_CLASSES = 50  # More distinct numbers are amounts rather than the names of classes.
ENOUGH_ROWS = 20  # to tell that classes are as many as rows
LARGEST = torch.finfo(torch.float32).max
# What is said of a number that is not there: the choice belongs to the training.
_CHOOSE = "; --missing says what becomes of numbers that are not there"
_FILL_IN = "; fill it in, or train the network with --missing mean (or zero, indicator)"


def find_schema(tables: SourceTables, source: FileSource, quantity: bool | None) -> Schema:
    """All columns that are neither the label nor ignored are features, of nodes and of edges."""
    all_names = _names((*tables.edges, *tables.nodes, *tables.graphs, *tables.pairs))
    if absent := [name for name in source.ignore if name not in all_names]:
        raise ValueError(f"no table has the ignored {_listed(absent)}; the columns are {_listed(all_names)}.")
    label_of, label = _find_label(tables, source.label, quantity)
    _check_pair_columns(tables, source)
    edge_names = [name for name in _names(tables.edges) if name not in source.ignore]
    node_names = [name for name in _names(tables.nodes) if name not in source.ignore and name != source.label]
    advice = "Add them, or, if they are no features, leave them out everywhere (--ignore, ignore=...)."
    _require(tables.edges, edge_names, advice)
    _require(tables.nodes, node_names, advice)
    weighted = "weight" in edge_names
    if weighted:
        edge_names.remove("weight")
    if absent := [name for name in source.categorical if name not in (*node_names, *edge_names)]:
        raise ValueError(
            f"no feature is called {_listed(absent)}, but categorical names it; the features are "
            f"{_listed([*node_names, *edge_names])}."
        )

    def columns(tables: Sequence[TextTable], names: Sequence[str]) -> tuple[ColumnSchema, ...]:
        return tuple(_feature_column(tables, name, name in source.categorical, source.missing) for name in names)

    node, edge = columns(tables.nodes, node_names), columns(tables.edges, edge_names)
    return Schema(node, edge, label, label_of, weighted, source.directed)


def check_schema(tables: SourceTables, schema: Schema) -> None:
    """Refuses tables that lack a feature of the schema. The label may be absent: it is what will be predicted."""
    if schema.node and not any(table.columns for table in tables.nodes):
        raise ValueError(
            f"the nodes have no columns, expected {_listed(_node_names(schema))}, which the network was trained with. "
            "Give the table of nodes as well (--nodes)."
        )
    advice = "The network was trained with them: add them."
    _require(tables.nodes, _node_names(schema), advice)
    _require(tables.edges, _edge_names(schema), advice)


def check_named_dataset(name: str, schema: Schema) -> None:
    """Refuses a dataset by name if the schema has features: those of the dataset have no names to compare."""
    if names := _node_names(schema) + _edge_names(schema):
        raise ValueError(
            f"{name} lacks the columns {_listed(names)}; the features of a dataset by name are not columns of files. "
            "The network was trained with them. Give files that have them (--edges, --nodes)."
        )


def features(columns: Sequence[ColumnSchema], table: TextTable, bad: list[BadRow], fitted: bool = False) -> Tensor:
    """The features of every row, from at least one column: `[rows, sum of the widths]`.

    Until the means are known (`fitted`), numbers stay as they are, and the widths are those of reading: see
    :class:`~idgnn.graphs.schema.ColumnSchema`.
    """
    parts = []
    advice = _FILL_IN if fitted else _CHOOSE
    for column in columns:
        if column.categories is not None:
            values = _coded(column, table, bad)  # [rows]
            parts.append((values.unsqueeze(1) == torch.arange(column.width)).float())  # [rows, categories]
            continue
        values = _coded(column, table, bad, None if column.missing == "error" else math.nan, advice)
        lacks = values.isnan()
        if column.missing != "error":
            values = values.masked_fill(lacks, 0.0)
        parts.append(torch.stack([values, lacks.double()], dim=1)[:, : column.read_width])
    found = torch.cat(parts, dim=1)
    return (standardize(columns, found) if fitted else found).float()


def labels(column: ColumnSchema, table: TextTable, bad: list[BadRow]) -> Tensor:
    """The labels of every row, `[rows]`: numbers of classes, or quantities. Unknown is -1, or NaN.

    A cell that is empty or `NA` is unknown, and so are a class that the schema does not have, and all cells of a table
    that lacks the column.
    """
    values = _coded(column, table, bad, empty=unknown(column))
    return values.float() if column.categories is None else values.long()


def unknown(column: ColumnSchema) -> float:
    """The value of a label that is not known."""
    return math.nan if column.categories is None else -1


def _find_label(
    tables: SourceTables, label: str | None, quantity: bool | None
) -> tuple[str | None, ColumnSchema | None]:
    if label is None:
        return None, None
    of = {"node": tables.nodes, "graph": tables.graphs, "pair": tables.pairs}
    holders = [whose for whose, tables_of in of.items() if label in _names(tables_of)]
    if len(holders) > 1:
        whose = " and of the ".join(f"{each}s" for each in holders)
        raise ValueError(f"the label {label!r} is a column of the {whose}. Rename all but one of them.")
    if not holders:
        pairs = f", the pairs {_listed(_names(tables.pairs))}" if tables.pairs else ""
        raise ValueError(
            f"there is no column {label!r} for the label; the nodes have {_listed(_names(tables.nodes))}, "
            f"the graphs {_listed(_names(tables.graphs))}{pairs}. Name one of them."
        )
    found = [table.columns[label] for table in of[holders[0]] if label in table.columns]
    column = _label_column(label, chain.from_iterable(cells.distinct for cells in found), quantity)
    _warn_of_unlike_classes(column, found)
    return holders[0], column


def _check_pair_columns(tables: SourceTables, source: FileSource) -> None:
    """Pairs of nodes have no features: a column that is neither the label nor ignored is refused."""
    for table in tables.pairs:
        if more := [name for name in table.columns if name != source.label and name not in source.ignore]:
            raise ValueError(
                f"{table.path} has the columns {_listed(more)}, which cannot be features of pairs. Name one of them as "
                "the label (--label), and the others in ignore (--ignore)."
            )


def _warn_of_unlike_classes(column: ColumnSchema, found: Sequence[TextColumn]) -> None:
    """Warns of classes that look like names or quantities: most rows have their own, or numbers have fractions."""
    known = sum(len(cells) - cells.rows_where(filter(_is_unknown, cells.distinct)).size for cells in found)
    categories = column.categories or ()
    numbers = [value for value in map(number, categories) if value is not None]
    unique = known >= ENOUGH_ROWS and 2 * len(categories) > known
    if unique or any(not value.is_integer() for value in numbers):
        kind = "a quantity: for a quantity, choose a regression" if numbers else "names: choose another column"
        warnings.warn(
            f"the label {column.name!r} has {len(categories)} different values in {known} rows, like {kind}.",
            stacklevel=2,
        )


def _require(tables: Sequence[TextTable], names: Sequence[str], advice: str) -> None:
    for table in tables:
        if missing := [name for name in names if name not in table.columns]:
            raise ValueError(
                f"{table.path} lacks the columns {_listed(missing)}; it has {_listed(table.columns)}. {advice}"
            )
        if partial := [f"{name!r} at {table.partial[name]}" for name in names if name in table.partial]:
            raise ValueError(
                f"{table.path} has attributes without a number or a text: {', '.join(partial)} of {len(table.lines)} "
                "places. Give them everywhere, or name them in ignore."
            )


def _node_names(schema: Schema) -> list[str]:
    """The columns of nodes that features are made of."""
    return [column.name for column in schema.node]


def _edge_names(schema: Schema) -> list[str]:
    """The columns of edges that features and weights are made of."""
    return [column.name for column in schema.edge] + ["weight"] * schema.weighted


def _names(tables: Sequence[TextTable]) -> list[str]:
    return list(dict.fromkeys(name for table in tables for name in table.columns))


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, names)) if names else "none"


def _feature_column(tables: Sequence[TextTable], name: str, categorical: bool, missing: Missing) -> ColumnSchema:
    """A number if all cells are numbers, empty or `NA`; otherwise, or if it is `categorical`, each text is a category.

    Categories are sorted, as numbers if all of them are.
    """
    distinct = set(chain.from_iterable(table.columns[name].distinct for table in tables))
    numbers = _are_numbers(distinct)
    if numbers and not categorical:
        # A column that is complete now needs no indicator; where new files lack a number, it is the mean.
        complete = missing == "indicator" and not any(map(_is_unknown, distinct))
        return ColumnSchema(name, missing="mean" if complete else missing)
    if len(distinct) > MOST_CATEGORIES:
        kind = "named categorical" if numbers else "not all numbers"
        raise ValueError(
            f"column {name!r} of {tables[0].path} has {len(distinct)} different values that are {kind}, expected at "
            f"most {MOST_CATEGORIES} categories. If it is no feature, name it in ignore."
        )

    def order(cell: str) -> tuple[float, str]:
        value = number(cell) if numbers else None
        return (value if value is not None and math.isfinite(value) else -math.inf), cell

    return ColumnSchema(name, tuple(sorted(distinct, key=order)))


def _label_column(name: str, cells: Iterable[str], quantity: bool | None = None) -> ColumnSchema:
    """A quantity if all cells are numbers and some have a fraction, or if there are many; otherwise classes.

    Cells that are empty or `NA` do not count. Classes are sorted, as numbers if all of them are whole. `quantity` says
    which of the two it is, if that is known.
    """
    distinct = dict.fromkeys(cell for cell in cells if not _is_unknown(cell))  # in the order of the file
    if quantity:
        if distinct and all(number(cell) is None for cell in distinct):
            raise ValueError(
                f"the label {name!r} holds text, such as {next(iter(distinct))!r}, but a regression expects numbers. "
                "Name a column of numbers, or choose a classification."
            )
        return ColumnSchema(name)
    if not distinct or not _are_numbers(distinct):
        return ColumnSchema(name, tuple(sorted(distinct)))
    value = {cell: float(cell) for cell in distinct if math.isfinite(float(cell))}
    many = len(set(value.values())) > MOST_CLASSES or not all(v.is_integer() for v in value.values())
    if many and quantity is None:
        return ColumnSchema(name)
    return ColumnSchema(name, tuple(sorted(value, key=lambda cell: (value[cell], cell))))


def _are_numbers(distinct: Collection[str]) -> bool:
    """Whether all cells that are not empty are numbers, and one of them is finite; true if there is no cell at all."""
    numbers = [number(cell) for cell in distinct if not _is_unknown(cell)]
    return None not in numbers and (
        not distinct or any(value is not None and math.isfinite(value) for value in numbers)
    )


def _coded(
    column: ColumnSchema, table: TextTable, bad: list[BadRow], empty: float | None = None, advice: str = ""
) -> Tensor:
    """Every cell as a number, `[rows]`: itself, or the place of its category. Each distinct cell is parsed once.

    A number that is not there becomes `empty`, or, if that is `None`, a bad row with `advice`.
    """
    cells = table.columns.get(column.name)
    if cells is None:
        cells = TextColumn.constant("", len(table.lines))
    codes: list[float] = []
    wrong: dict[str, str] = {}
    place = None if column.categories is None else {category: i for i, category in enumerate(column.categories)}
    for cell in cells.distinct:
        code = number(cell) if place is None else place.get(cell)
        if empty is not None and (_is_unknown(cell) or (place is not None and code is None)):
            codes.append(empty)
            continue
        if code is None or not abs(code) <= LARGEST:
            missing = place is None and _is_unknown(cell) and column.name != "weight"  # of an edge
            wrong[cell] = f"column {column.name!r} is {cell!r}, expected {_expected(column)}{advice if missing else ''}"
        codes.append(math.nan if code is None else code)
    bad.extend(BadRow(table.path, table.lines[row], wrong[cells[row]]) for row in cells.rows_where(wrong))
    return torch.from_numpy(np.array(codes, np.float64)[cells.codes])


def _is_unknown(cell: str) -> bool:
    return cell.lower() in NOT_KNOWN


def _expected(column: ColumnSchema) -> str:
    if column.categories is None:
        return "a finite number"
    known = ", ".join(map(repr, column.categories[:10]))
    return f"one of the known {known}" + (f" and {column.width - 10} more" if column.width > 10 else "")
