"""From tables to a heterogeneous graph, and what of it was known at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.choices import ColumnEncoding
from idgnn.graphs.relational.columns import Codes, features, find_codes, moments
from idgnn.graphs.relational.frames import tensor_frame
from idgnn.graphs.relational.relbench_tables import is_database, tables_of
from idgnn.graphs.relational.tables import KeyedTable, read_tables
from idgnn.graphs.relational.times import YEAR, as_text

AGE_CHANNELS = 4
_AGE_SCALES = (0.1, 1.0, 5.0)  # years: the last races, the season, a career


def load_tables(source: Any) -> dict[str, KeyedTable]:
    """The tables of a folder with its `schema.toml`, or of a `Database` of the package relbench."""
    if is_database(source):
        return tables_of(source)
    return read_tables(Path(source))


def to_graph(
    tables: Mapping[str, KeyedTable], codes: Codes | None = None, columns: ColumnEncoding = "linear"
) -> HeteroData:
    """One node type for each table, and two edge types for each foreign key: from the row to the row it names and back.

    Nodes have `x` (see :class:`~idgnn.graphs.relational.columns.ColumnCode`; a constant 1 if there are no features),
    `time` `[rows]` in seconds since 1970 where the table has one, and `key`, the list of their keys. Columns of times
    are also there as seconds, `moments` `[rows, columns]`, with their places in `x`, `moment_columns`. `codes` are
    those of the training data, or of :func:`~idgnn.graphs.relational.columns.find_codes`. With `columns="frame"` the
    columns are a `TensorFrame` of pytorch-frame, `tf`, and `x` has the columns of times alone, for their ages.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "users.csv").write_text("id,age\\na,31\\nb,\\n")
        ...     _ = Path(folder, "visits.csv").write_text("user,day\\nb,2020-01-01\\n")
        ...     _ = Path(folder, "schema.toml").write_text('''
        ... [users]
        ... key = "id"
        ... [visits]
        ... key = ""
        ... foreign = { user = "users" }
        ... time = "day"
        ... ''')
        ...     graph = to_graph(load_tables(folder))
        >>> graph["visits", "user", "users"].edge_index.tolist(), graph["users"].x.tolist()
        ([[0], [1]], [[0.0, 0.0], [0.0, 1.0]])
    """
    codes = find_codes(tables) if codes is None else codes
    graph = HeteroData()
    for name, table in tables.items():
        graph[name].key = list(table.keys)
        place, seconds = moments(table, codes[name])
        if columns == "frame":
            place = list(range(len(place)))
            graph[name].x, graph[name].tf = torch.zeros(len(table), len(place)), tensor_frame(table, codes[name])
        else:
            x = features(table, codes[name])
            graph[name].x = torch.from_numpy(x) if x.shape[1] else torch.ones(len(table), 1)
        if place:
            graph[name].moment_columns, graph[name].moments = place, torch.from_numpy(seconds)
        if table.time is not None:
            graph[name].time = torch.from_numpy(table.time)
    for name, table in tables.items():
        for column, rows in table.links.items():
            source = np.flatnonzero(rows >= 0)
            edges = torch.from_numpy(np.stack([source, rows[source]]))  # [2, rows that refer to one]
            target = table.schema.foreign[column]
            graph[name, column, target].edge_index = edges
            graph[target, f"rev_{column}", name].edge_index = edges.flip(0)
    return graph


def last_time(graph: HeteroData) -> int | None:
    """The largest time of any node; `None` if there are no times."""
    times = [int(store.time.max()) for store in graph.node_stores if "time" in store and store.time.numel()]
    return max(times, default=None)


def aged_snapshot(
    graph: HeteroData, before: float, window: float | None = None, whole: tuple[str, ...] = ()
) -> HeteroData:
    """What was known before a time: the nodes whose time is earlier, those without time, and the edges between them.

    Unlike :func:`idgnn.snapshot` it drops the other nodes, and `row` of each type says which nodes of the graph its
    nodes are. `window` is in seconds: then nodes that are older than that are left out too. Of the types in `whole`,
    which queries name by number, all nodes stay, whatever their age; `known` `[nodes]` says which of them were there
    before that time, and the others have no edges. Columns of times become
    ages, so that nothing depends on the year. There are more features: of nodes with a time :data:`AGE_CHANNELS`, from
    their age at that time; of all, for each foreign key that refers to their table, log(1 + the number of rows that
    do), which a mean over them does not tell. Costs one pass over the edges.
    """
    found = HeteroData()
    new: dict[str, Tensor] = {}
    for kind in graph.node_types:
        store = graph[kind]
        keep = torch.ones(int(store.num_nodes), dtype=torch.bool)
        if "time" in store:
            keep = store.time < before
            if window is not None and kind not in whole:
                keep &= store.time >= before - window
        rows = keep.nonzero().view(-1)
        if kind in whole:
            new[kind] = torch.arange(keep.numel()).masked_fill(~keep, -1)
            found[kind].known, rows = keep, torch.arange(keep.numel())
        else:
            new[kind] = torch.full((keep.numel(),), -1).index_copy(0, rows, torch.arange(rows.numel()))
        found[kind].row = rows
        x = store.x[rows]
        if "moments" in store:
            decades = (before - store.moments[rows]) / (10 * YEAR)
            x[:, store.moment_columns] = decades.nan_to_num(0.0).float()
        if "tf" in store:
            found[kind].tf = store.tf[rows]
        found[kind].x = torch.cat([x, _age(before - store.time[rows])], dim=1) if "time" in store else x
    for kind in graph.edge_types:
        source, target = graph[kind].edge_index
        ends = torch.stack([new[kind[0]][source], new[kind[2]][target]])
        found[kind].edge_index = ends[:, (ends >= 0).all(0)]
    for kind in _foreign_keys(graph):
        store = found[kind[2]]
        count = torch.bincount(found[kind].edge_index[1], minlength=store.row.numel())
        store.x = torch.cat([store.x, count.unsqueeze(1).float().log1p()], dim=1)
    return found


def aged_channels(graph: HeteroData) -> dict[str, int]:
    """The number of features of each node type in an :func:`aged_snapshot`."""
    keys = [kind[2] for kind in _foreign_keys(graph)]
    return {
        kind: graph[kind].x.size(1) + AGE_CHANNELS * ("time" in graph[kind]) + keys.count(kind)
        for kind in graph.node_types
    }


def check_within_data(graph: HeteroData, times: Tensor, what: str) -> None:
    """Refuses query times `[queries]` before which nothing was known, or later than a year after the last row."""
    last = last_time(graph)
    if last is None or not times.numel():
        return
    first = min(int(store.time.min()) for store in graph.node_stores if "time" in store and store.time.numel())
    if int(times.max()) > last + YEAR:
        raise ValueError(
            f"{what} asks about {as_text(int(times.max()))}, more than a year in the future of the data, which ends at "
            f"{as_text(last)}. Add the newer rows, or say up to which time the data is used (upto)."
        )
    if int(times.max()) <= first:
        raise ValueError(
            f"{what} asks about {as_text(int(times.max()))} at the latest, but the data begins at {as_text(first)}: "
            "nothing was known before."
        )


def _foreign_keys(graph: HeteroData) -> list[tuple[str, str, str]]:
    """The edge types that lead from a row to the row that it names."""
    return [kind for kind in graph.edge_types if not kind[1].startswith("rev_")]


def _age(seconds: Tensor) -> Tensor:
    """Features of an age `[nodes]` in seconds, `[nodes, AGE_CHANNELS]`: in decades, and how recent on three scales."""
    years = seconds.clamp(min=0).double() / YEAR
    return torch.stack([years / 10, *(torch.exp(-years / scale) for scale in _AGE_SCALES)], dim=1).float()
