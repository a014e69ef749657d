"""Objects of the package relbench as tables; they are recognized by their attributes, and relbench is not imported."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from idgnn.graphs.relational.schema import TableSchema, check_references
from idgnn.graphs.relational.tables import CellTable, KeyedTable, connect


def is_database(value: Any) -> bool:
    """Whether it is a `relbench.base.Database`: tables with keys, under `table_dict`."""
    tables = getattr(value, "table_dict", None)
    return isinstance(tables, dict) and all(is_table(table) for table in tables.values())


def is_table(value: Any) -> bool:
    """Whether it is a `relbench.base.Table`: a data frame, its key, its foreign keys and its time column."""
    return all(hasattr(value, name) for name in ("df", "pkey_col", "fkey_col_to_pkey_table", "time_col"))


def tables_of(database: Any) -> dict[str, KeyedTable]:
    """The tables of a `relbench.base.Database`."""
    found = database.table_dict
    schema = {
        name: TableSchema(key=table.pkey_col, foreign=dict(table.fkey_col_to_pkey_table), time=table.time_col)
        for name, table in found.items()
    }
    texts = {name: text_of(table, name) for name, table in found.items()}
    return connect(texts, check_references(schema, "the relbench database"))


def text_of(table: Any, name: str) -> CellTable:
    """A `relbench.base.Table` as text; its rows are counted from 0, as in its data frame."""
    columns = {str(column): [_cell(value) for value in table.df[column].tolist()] for column in table.df.columns}
    return CellTable(path=Path(name), lines=range(len(table.df)), columns=columns)


def _cell(value: Any) -> str:
    """A value of a data frame as the cell of a CSV file; keys that pandas made floats are whole numbers again."""
    if value is None:
        return ""
    if hasattr(value, "tolist"):  # a list of items from a Parquet file, or a number of numpy
        value = value.tolist()
    if isinstance(value, list):
        return json.dumps(value)
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return str(value).strip()
