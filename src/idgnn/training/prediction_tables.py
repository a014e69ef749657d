"""Results as tables: a row for each query, with the names that the user gave to graphs and nodes."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import pointers
from idgnn.tasks.query_set import QuerySet
from idgnn.writing import replacing

PredictionTable = Mapping[str, Sequence[Any]]
"""Columns of equal length by name, in order."""

FORMATS = (".csv", ".parquet", ".npz")


def query_columns(
    part: QuerySet, graphs: Sequence[Data], numbers: Sequence[int], pair_columns: tuple[str, str] = ("source", "target")
) -> PredictionTable:
    """The graph, and the node or pair, of each row: by name where there are names, by number otherwise.

    Args:
        part: The queries.
        graphs: The graphs of the query set.
        numbers: The numbers of graphs without a name.
        pair_columns: The column names of the node of a pair that is read and of the node that is colored.
    """
    name = [graph.get("graph_name", number) for graph, number in zip(graphs, numbers, strict=True)]
    if part.level == "graph":
        return {"graph": name}
    owner = part.query_owner.cpu()
    queries = torch.arange(part.owner.numel()) if part.queries is None else part.queries.cpu()
    local = (queries - pointers(part.owner.cpu(), part.num_graphs)[owner]).tolist()
    owners = owner.tolist()
    columns = {"node": local} if queries.dim() == 1 else dict(sorted(zip(pair_columns, local, strict=True)))
    names = [graph.get("node_name") for graph in graphs]
    return {"graph": [name[i] for i in owners]} | {
        column: [node if (known := names[i]) is None else known[node] for i, node in zip(owners, nodes, strict=True)]
        for column, nodes in columns.items()
    }


def prediction_columns(columns: Mapping[str, Tensor], classes: Sequence[str] | None) -> PredictionTable:
    """The columns of :meth:`Objective.read`, with the names of classes in place of their numbers if there are any."""
    table: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if name.startswith("probability_") and classes:
            name = f"probability_{classes[int(name.removeprefix('probability_'))]}"
        table[name] = class_names_of(values, classes) if name == "class" else values.tolist()
    return table


def class_names_of(values: Tensor, classes: Sequence[str] | None) -> list[Any]:
    """Class numbers as class names, if there are any. Quantities stay as they are."""
    listed = values.tolist()
    return [classes[i] for i in listed] if classes and not values.is_floating_point() else listed


def write_table(table: PredictionTable, path: Path) -> None:
    """Writes a table as CSV, Parquet or npz, by the suffix of the path."""
    check_format(path)
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(table)
                writer.writerows(zip(*table.values(), strict=True))
        elif path.suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez_compressed(file, **{name: _unpickled(values) for name, values in table.items()})
        else:
            import pyarrow
            from pyarrow import parquet

            parquet.write_table(pyarrow.table({name: list(values) for name, values in table.items()}), temporary)


def _unpickled(values: Sequence[Any]) -> Any:
    """As an array of numbers or of texts: NumPy would pickle other objects, and old versions cannot be told not to."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype == object else array


def check_format(path: Path) -> None:
    """Refuses folders and unknown suffixes."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, expected the name of a file. Add one, for example {path / 'table.csv'}.")
    if path.suffix not in FORMATS:
        raise ValueError(f"the table is {path}, expected a name that ends in {', '.join(FORMATS)}.")
