"""Queries with a time: what is asked about an entity, and what was found later."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idgnn.graphs.files.text import BadRow, BadRows, number
from idgnn.graphs.relational.relbench_tables import text_of
from idgnn.graphs.relational.tables import CellTable, KeyedTable, find_row, is_missing, read_cells, report
from idgnn.graphs.relational.times import all_seconds, as_text

MOST_CLASSES = 1000


@dataclass(frozen=True)
class ItemLists:
    """Some items for each query: those of query q are `item[start[q]:start[q + 1]]`."""

    item: Tensor  # [pairs]
    start: Tensor  # [queries + 1]

    @staticmethod
    def of(lists: list[list[int]]) -> ItemLists:
        """From a list of items for each query.

        Example:
            >>> ItemLists.of([[3], [], [1, 2]]).start.tolist()
            [0, 1, 1, 3]
        """
        sizes = torch.tensor([0, *map(len, lists)])
        return ItemLists(torch.tensor([item for items in lists for item in items], dtype=torch.long), sizes.cumsum(0))

    def __len__(self) -> int:
        return self.start.numel() - 1

    @property
    def size(self) -> Tensor:
        """How many items each query has, `[queries]`."""
        return self.start.diff()

    @property
    def query(self) -> Tensor:
        """The query of each item, `[pairs]`."""
        return torch.arange(len(self), device=self.start.device).repeat_interleave(self.size)

    def take(self, queries: Tensor) -> ItemLists:
        """The items of some queries, in the given order."""
        size = self.size[queries]
        start = torch.cat([size.new_zeros(1), size.cumsum(0)])
        within = torch.arange(int(start[-1]), device=size.device) - start[:-1].repeat_interleave(size)
        return ItemLists(self.item[self.start[queries].repeat_interleave(size) + within], start)

    def to(self, device: torch.device | str) -> ItemLists:
        """The same on another device."""
        return ItemLists(self.item.to(device), self.start.to(device))

    def as_mask(self, num_items: int) -> Tensor:
        """Whether an item belongs to a query, `[queries, num_items]`."""
        mask = torch.zeros(len(self), num_items, dtype=torch.bool, device=self.item.device)
        mask[self.query, self.item] = True
        return mask


@dataclass(frozen=True)
class TimedQueries:
    """Entities at a time, with a number to predict for each, or with the items to rank first."""

    entity_type: str
    entity: Tensor  # [queries] rows of the entity table
    time: Tensor  # [queries] seconds since 1970
    target: Tensor | None = None  # [queries]
    item_type: str | None = None
    items: ItemLists | None = None

    def __len__(self) -> int:
        return self.entity.numel()

    def take(self, queries: Tensor) -> TimedQueries:
        """Some of the queries, in the given order."""
        return replace(
            self,
            entity=self.entity[queries],
            time=self.time[queries],
            target=None if self.target is None else self.target[queries],
            items=None if self.items is None else self.items.take(queries),
        )


@dataclass(frozen=True)
class TaskColumns:
    """Which columns of a task table hold what."""

    entity: str
    """The column with the key of the entity."""
    entity_type: str
    """The table of the entity."""
    time: str
    target: str | None
    """The column to predict: a number, a class, or the list of keys of items, `[3, 14, 15]`; `None` if it is not
    known."""
    item_type: str | None = None
    """The table of the items, for a recommendation."""
    classes: tuple[str, ...] | None = None
    """The names of the classes, if the target is one of them (:func:`find_classes`)."""


def read_queries(source: Any, columns: TaskColumns, tables: Mapping[str, KeyedTable]) -> TimedQueries:
    """Reads a task table: a file, or a `relbench.base.Table`.

    Raises:
        BadRows: rows about entities or items that the tables do not have, or do not have yet at the time of the row,
            without time or without target.
    """
    bad: list[BadRow] = []
    text = _cells(source, bad)
    wanted = (columns.entity, columns.time, columns.target)
    if absent := [name for name in wanted if name is not None and name not in text.columns]:
        raise ValueError(
            f"{text.path} has the columns {', '.join(text.columns)}, but the task names {', '.join(map(repr, absent))}."
        )
    for kind in (columns.entity_type, columns.item_type):
        if kind is not None and kind not in tables:
            raise ValueError(f"the task is about table {kind!r}, which is none of {', '.join(tables)}.")
    entity = _rows(text, columns.entity, tables[columns.entity_type], columns.entity_type, bad)
    time = all_seconds(text.columns[columns.time])
    cells = text.columns[columns.time]
    report(text, np.isnan(time), lambda row: f"time {columns.time!r} is {cells[row]!r}, expected a date", bad)
    born = tables[columns.entity_type].time
    if born is not None and not bad:
        keys, row_time = text.columns[columns.entity], born[entity]
        report(
            text,
            row_time > time,
            lambda row: (
                f"asks about {keys[row]!r} at {cells[row]}, but its row of table {columns.entity_type!r} is of "
                f"{as_text(row_time[row])}"
            ),
            bad,
        )
    target = items = None
    if columns.target is None:
        pass
    elif columns.item_type is None:
        target = _targets(text, columns.target, columns.classes, bad)
    else:
        items = _item_lists(text, columns.target, tables[columns.item_type], columns.item_type, bad)
    if bad:
        raise BadRows(bad)
    return TimedQueries(
        columns.entity_type,
        torch.from_numpy(entity),
        torch.from_numpy(time.astype(np.int64)),
        target,
        columns.item_type,
        items,
    )


def find_classes(source: Any, column: str) -> tuple[str, ...]:
    """The names of the classes in a column of a task table, sorted, as numbers if they all are.

    `true` and `false`, in any case, are 1 and 0, and so are numbers that are written in another way.
    """
    text = _cells(source, [])
    names = {_class_name(cell) for cell in text.columns.get(column, []) if not is_missing(cell)}
    if len(names) > MOST_CLASSES:
        raise ValueError(
            f"column {column!r} of {text.path} has {len(names):,} different values, expected at most {MOST_CLASSES} "
            "classes. For numbers use entity-regression."
        )
    values = {name: number(name) for name in names}
    return tuple(sorted(names, key=lambda name: (values[name] is None, values[name] or 0.0, name)))


def _class_name(cell: str) -> str:
    value = number(cell)
    if value is not None and math.isfinite(value) and value == int(value):
        return str(int(value))
    return {"true": "1", "false": "0"}.get(cell.lower(), cell)


def _cells(source: Any, bad: list[BadRow]) -> CellTable:
    """The cells of a file, or of a `relbench.base.Table`."""
    return read_cells(Path(source), bad) if isinstance(source, str | Path) else text_of(source, "task table")


def _rows(text: CellTable, column: str, table: KeyedTable, name: str, bad: list[BadRow]) -> np.ndarray:
    row_of, cells = table.row_of(), text.columns[column]
    rows = np.array([find_row(row_of, cell, -1) for cell in cells], dtype=np.int64)
    report(text, rows < 0, lambda row: f"column {column!r} is {cells[row]!r}, which table {name!r} does not have", bad)
    return rows


def _targets(text: CellTable, column: str, classes: tuple[str, ...] | None, bad: list[BadRow]) -> Tensor:
    """Numbers `[queries]` float, or the places of classes among their names `[queries]` long."""
    cells = text.columns[column]
    if classes is not None:
        place = {name: i for i, name in enumerate(classes)}
        found = [place.get(_class_name(cell), -1) for cell in cells]
        known = f"{', '.join(classes[:10])}{', ...' if len(classes) > 10 else ''}"
        wrong = np.array(found, dtype=np.int64) < 0
        report(text, wrong, lambda row: f"column {column!r} is {cells[row]!r}, expected one of {known}", bad)
        return torch.tensor(found)
    words = {"true": 1.0, "false": 0.0}
    values = [words.get(cell.lower(), number(cell)) for cell in cells]
    wrong = np.array([value is None or not np.isfinite(value) for value in values], dtype=bool)
    more = ". Classes by name are for entity-classification"
    report(text, wrong, lambda row: f"column {column!r} is {cells[row]!r}, expected a number{more}", bad)
    return torch.tensor([0.0 if value is None else value for value in values])


def _item_lists(text: CellTable, column: str, table: KeyedTable, name: str, bad: list[BadRow]) -> ItemLists:
    row_of, lists = table.row_of(), []
    for row, cell in enumerate(text.columns[column]):
        keys = _keys(cell)
        if keys is None:
            what = f"column {column!r} is {cell!r}, expected a list of keys such as [3, 14] or [monza, spa]"
            bad.append(BadRow(text.path, text.lines[row], what))
            continue
        if strange := [key for key in keys if key not in row_of]:
            what = f"column {column!r} has {', '.join(map(repr, strange))}, which table {name!r} does not have"
            bad.append(BadRow(text.path, text.lines[row], what))
        lists.append(list(dict.fromkeys(row_of[key] for key in keys if key in row_of)))  # each item once
    return ItemLists.of(lists)


def _keys(cell: str) -> list[str] | None:
    """The keys of a list in JSON, or of one whose keys stand without quotation marks or with single ones."""
    try:
        found = json.loads(cell)
        return [str(key) for key in found] if isinstance(found, list) else None
    except ValueError:
        pass
    cell = cell.strip()
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    words = [word.strip() for word in cell[1:-1].split(",")]
    return [word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word for word in words]
