"""Queries with a time: what is asked about an entity, and what was found later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idgnn.graphs.files.text import BadRow, BadRows, number
from idgnn.graphs.relational.relbench_tables import text_of
from idgnn.graphs.relational.tables import CellTable, KeyedTable, read_cells, report
from idgnn.graphs.relational.times import all_seconds


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
    """The column to predict: a number, or the list of keys of items, `[3, 14, 15]`; `None` if it is not known."""
    item_type: str | None = None
    """The table of the items, for a recommendation."""


def read_queries(source: Any, columns: TaskColumns, tables: Mapping[str, KeyedTable]) -> TimedQueries:
    """Reads a task table: a file, or a `relbench.base.Table`.

    Raises:
        BadRows: rows about entities or items that the tables do not have, without time or without target.
    """
    bad: list[BadRow] = []
    is_file = isinstance(source, str | Path)
    text = read_cells(Path(source), bad) if is_file else text_of(source, "task table")
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
    target = items = None
    if columns.target is None:
        pass
    elif columns.item_type is None:
        target = _targets(text, columns.target, bad)
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


def _rows(text: CellTable, column: str, table: KeyedTable, name: str, bad: list[BadRow]) -> np.ndarray:
    row_of, cells = table.row_of(), text.columns[column]
    rows = np.array([row_of.get(cell, -1) for cell in cells], dtype=np.int64)
    report(text, rows < 0, lambda row: f"column {column!r} is {cells[row]!r}, which table {name!r} does not have", bad)
    return rows


def _targets(text: CellTable, column: str, bad: list[BadRow]) -> Tensor:
    cells = text.columns[column]
    words = {"true": 1.0, "false": 0.0}
    values = [words.get(cell.lower(), number(cell)) for cell in cells]
    wrong = np.array([value is None or not np.isfinite(value) for value in values], dtype=bool)
    report(text, wrong, lambda row: f"column {column!r} is {cells[row]!r}, expected a number", bad)
    return torch.tensor([0.0 if value is None else value for value in values])


def _item_lists(text: CellTable, column: str, table: KeyedTable, name: str, bad: list[BadRow]) -> ItemLists:
    row_of, lists = table.row_of(), []
    for row, cell in enumerate(text.columns[column]):
        try:
            keys = json.loads(cell)
        except ValueError:
            keys = None
        if not isinstance(keys, list):
            bad.append(BadRow(text.path, text.lines[row], f"column {column!r} is {cell!r}, expected a list: [3, 14]"))
            continue
        if strange := [key for key in keys if str(key) not in row_of]:
            what = f"column {column!r} has {', '.join(map(repr, strange))}, which table {name!r} does not have"
            bad.append(BadRow(text.path, text.lines[row], what))
        lists.append([row_of[str(key)] for key in keys if str(key) in row_of])
    return ItemLists.of(lists)
