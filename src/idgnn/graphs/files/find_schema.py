"""Finds out what the columns of a user's tables are, and checks that they are there when a schema is used again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

from idgnn.graphs.files.columns import feature_column, label_column
from idgnn.graphs.files.gather import Tables
from idgnn.graphs.files.table import Table
from idgnn.graphs.schema import Column, Schema


def find_schema(
    tables: Tables, label: str | None, ignore: Collection[str], directed: bool, quantity: bool | None
) -> Schema:
    """All columns that are neither the label nor ignored are features, of nodes and of edges."""
    all_names = _names((*tables.edges, *tables.nodes, *tables.graphs))
    if absent := [name for name in ignore if name not in all_names]:
        raise ValueError(f"no table has the ignored {_listed(absent)}; the columns are {_listed(all_names)}.")
    label_of, label_type = _find_label(tables, label, quantity)
    edge_names = [name for name in _names(tables.edges) if name not in ignore]
    node_names = [name for name in _names(tables.nodes) if name not in ignore and name != label]
    advice = "Add them, or, if they are no features, leave them out everywhere (--ignore, ignore=...)."
    _require(tables.edges, edge_names, advice)
    _require(tables.nodes, node_names, advice)
    return Schema(
        node=_feature_columns(tables.nodes, node_names),
        edge=_feature_columns(tables.edges, [name for name in edge_names if name != "weight"]),
        label=label_type,
        label_of=label_of,
        weighted="weight" in edge_names,
        directed=directed,
    )


def check_schema(tables: Tables, schema: Schema) -> None:
    """Refuses tables that lack a feature of the schema. The label may be absent: it is what will be predicted."""
    if schema.node and not any(table.columns for table in tables.nodes):
        raise ValueError(
            f"the nodes have no columns, expected {_listed([column.name for column in schema.node])}, which the "
            "network was trained with. Give the table of nodes as well (--nodes)."
        )
    advice = "The network was trained with them: add them."
    _require(tables.nodes, [column.name for column in schema.node], advice)
    _require(tables.edges, [column.name for column in schema.edge] + ["weight"] * schema.weighted, advice)


def _find_label(tables: Tables, label: str | None, quantity: bool | None) -> tuple[str | None, Column | None]:
    if label is None:
        return None, None
    of = {"node": tables.nodes, "graph": tables.graphs}
    holders = [whose for whose, tables_of in of.items() if label in _names(tables_of)]
    if len(holders) == 2:
        raise ValueError(f"the label {label!r} is a column of the nodes and of the graphs. Rename one of the two.")
    if not holders:
        raise ValueError(
            f"there is no column {label!r} for the label; the nodes have {_listed(_names(tables.nodes))}, "
            f"the graphs {_listed(_names(tables.graphs))}. Name one of them."
        )
    cells = chain.from_iterable(table.columns.get(label, ()) for table in of[holders[0]])
    return holders[0], label_column(label, cells, quantity)


def _feature_columns(tables: Sequence[Table], names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(
        feature_column(name, chain.from_iterable(table.columns[name] for table in tables), tables[0].path)
        for name in names
    )


def _require(tables: Sequence[Table], names: Sequence[str], advice: str) -> None:
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


def _names(tables: Sequence[Table]) -> list[str]:
    return list(dict.fromkeys(name for table in tables for name in table.columns))


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, names)) if names else "none"
