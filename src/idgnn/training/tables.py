"""Results as tables: a row for each query, with the names that the user gave to graphs and nodes."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.adjacency import pointers
from idgnn.tasks.query_set import QuerySet
from idgnn.writing import replacing

Table = Mapping[str, Sequence[Any]]
"""Columns of equal length by their names, in order."""

FORMATS = (".csv", ".parquet", ".npz")


def query_columns(
    part: QuerySet, graphs: Sequence[Data], numbers: Sequence[int], ends: tuple[str, str] = ("source", "target")
) -> Table:
    """Which graph, node or pair each row is about: names where there are any, numbers otherwise.

    `graphs` are those of the part, `numbers` what a graph without a name is called, `ends` the nodes of a pair.
    """
    name = [graph.get("graph_name", number) for graph, number in zip(graphs, numbers, strict=True)]
    if part.level == "graph":
        return {"graph": name}
    owner = part.query_owner.cpu()
    queries = torch.arange(part.owner.numel()) if part.queries is None else part.queries.cpu()
    local = (queries - pointers(part.owner.cpu(), part.num_graphs)[owner]).tolist()
    owners = owner.tolist()
    asked = {"node": local} if queries.dim() == 1 else dict(sorted(zip(ends, local, strict=True)))
    names = [graph.get("node_name") for graph in graphs]
    return {"graph": [name[i] for i in owners]} | {
        end: [node if (known := names[i]) is None else known[node] for i, node in zip(owners, nodes, strict=True)]
        for end, nodes in asked.items()
    }


def answer_columns(columns: Mapping[str, Tensor], classes: Sequence[str] | None) -> Table:
    """What an objective reads from outputs; with the names of classes in place of their numbers if there are any."""
    table: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if name.startswith("probability_") and classes:
            name = f"probability_{classes[int(name.removeprefix('probability_'))]}"
        table[name] = named(values, classes) if name == "class" else values.tolist()
    return table


def named(values: Tensor, classes: Sequence[str] | None) -> list[Any]:
    """Numbers of classes as their names, if they have any."""
    listed = values.tolist()
    return [classes[i] for i in listed] if classes and not values.is_floating_point() else listed


def write_table(table: Table, path: Path) -> None:
    """Writes a table as CSV, Parquet (needs pyarrow) or npz, by the suffix of the path."""
    check_format(path)
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(table)
                writer.writerows(zip(*table.values(), strict=True))
        elif path.suffix == ".npz":
            arrays: dict[str, Any] = {name: np.asarray(values) for name, values in table.items()}
            with temporary.open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **arrays)
        else:
            made = import_module("pyarrow").table({name: list(values) for name, values in table.items()})
            import_module("pyarrow.parquet").write_table(made, temporary)


def check_format(path: Path) -> None:
    """Refuses a file whose name does not tell a format that can be written here, and a folder."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, expected the name of a file. Add one, for example {path / 'table.csv'}.")
    if path.suffix not in FORMATS:
        raise ValueError(f"{path} is to be written, expected a name that ends in {', '.join(FORMATS)}.")
    if path.suffix == ".parquet":
        try:
            import_module("pyarrow.parquet")
        except ImportError:
            raise ValueError("writing Parquet needs pyarrow: pip install pyarrow, or write .csv or .npz.") from None
