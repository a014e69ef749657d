"""What the columns of a folder of tables are for: keys, foreign keys, times, features. Imports no PyTorch."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

SCHEMA_FILE = "schema.toml"


@dataclass(frozen=True)
class TableSchema:
    """The columns of one table; those that are named nowhere here are features."""

    key: str | None = None
    """The column that identifies a row; `None` if no other table refers to it, and then rows are numbered."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Columns that hold the key of a row in another table, and the name of that table."""
    time: str | None = None
    """The column that says when a row came to be known, or `"foreign key.column"` for the time of the row it names."""
    shift_days: float = 0.0
    """Days that are added to the time: -1 if a row is known a day before the one that it takes its time from."""
    ignore: tuple[str, ...] = ()
    """Columns that are no features."""
    categorical: tuple[str, ...] = ()
    """Features that are categories although they are numbers."""
    file: str | None = None
    """Its file in the folder; otherwise the name of the table with any suffix that can be read."""


def read_schema(path: Path) -> dict[str, TableSchema]:
    """Reads a schema file in TOML, with one section for each table.

    .. code-block:: toml

        [circuits]
        key = "circuitId"

        [races]
        key = "raceId"
        foreign = { circuitId = "circuits" }
        time = "date"

        [results]
        key = "resultId"
        foreign = { raceId = "races", driverId = "drivers" }
        time = "raceId.date"
        ignore = ["positionText"]

    `key = ""` numbers the rows of a table that no other refers to.
    """
    if not path.is_file():
        raise ValueError(
            f"there is no schema file {path}. Write one: a section for each table, with key, foreign and time; "
            "see docs/relational.md."
        )
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a schema in TOML: {error}.") from None
    if not values:
        raise ValueError(f'{path} names no table. Add a section for each, such as [drivers] with key = "driverId".')
    return check_references({name: _table(path, name, value) for name, value in values.items()}, str(path))


def check_references(schema: dict[str, TableSchema], where: str) -> dict[str, TableSchema]:
    """The schema; refuses foreign keys to tables that are not there or have no key, and times through other columns."""
    for name, table in schema.items():
        for column, target in table.foreign.items():
            if target not in schema:
                raise ValueError(
                    f"{where}: foreign key {column!r} of table {name!r} refers to {target!r}, which is none of the "
                    f"tables {', '.join(schema)}."
                )
            if schema[target].key is None:
                raise ValueError(
                    f"{where}: foreign key {column!r} of table {name!r} refers to {target!r}, which has no key. "
                    "Name the column that identifies its rows (key)."
                )
        through, dot, _ = (table.time or "").rpartition(".")
        if dot and through not in table.foreign and table.time not in table.foreign:
            raise ValueError(
                f"{where}: table {name!r} takes its time from {table.time!r}, but {through!r} is none of its foreign "
                f"keys ({', '.join(table.foreign) or 'none'})."
            )
    return schema


def _table(path: Path, name: str, value: Any) -> TableSchema:
    if not isinstance(value, dict):
        raise ValueError(f"{path}: {name!r} is {value!r}, expected a section [{name}] for a table.")
    known = {each.name for each in fields(TableSchema)}
    if unknown := sorted(set(value) - known):
        raise ValueError(
            f"{path}: section [{name}] has {', '.join(map(repr, unknown))}, expected some of "
            f"{', '.join(sorted(known))}."
        )
    if "key" not in value:
        raise ValueError(
            f'{path}: table {name!r} has no key. Name the column that identifies its rows, key = "..."; or write '
            'key = "" to number them, if no table refers to it.'
        )
    kinds = {"key": str, "foreign": dict, "time": str, "shift_days": int | float, "ignore": list, "categorical": list}
    for option, kind in (kinds | {"file": str}).items():
        if option in value and not isinstance(value[option], kind):
            raise ValueError(f"{path}: {option} of table {name!r} is {value[option]!r}, expected a {_word(kind)}.")
    lists = {option: tuple(value[option]) for option in ("ignore", "categorical") if option in value}
    return TableSchema(**{**value, **lists, "key": value["key"] or None})


def _word(kind: Any) -> str:
    return {str: "text", dict: 'table such as { raceId = "races" }', list: "list of columns"}.get(kind, "number")
