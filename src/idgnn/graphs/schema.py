"""How the columns of tables become numbers: found from the training files, kept with the run, used for new files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class ColumnSchema:
    """A column of a table. With categories it is one-hot coded, one number per category; without it is a number.

    A number that is a feature becomes `(number - mean) / scale`; see :func:`fit_standardization`.
    """

    name: str
    categories: tuple[str, ...] | None = None
    mean: float = 0.0
    scale: float = 1.0

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return 1 if self.categories is None else len(self.categories)


@dataclass(frozen=True)
class Schema:
    """The columns that features and labels are made of."""

    node: tuple[ColumnSchema, ...] = ()
    edge: tuple[ColumnSchema, ...] = ()
    label: ColumnSchema | None = None
    """The label: its categories are the classes, in the order of their numbers; without any it is a quantity."""
    label_of: str | None = None
    """`"node"` or `"graph"`: what has the label."""
    weighted: bool = False
    """Whether the edges have a column `weight`, which becomes `edge_weight`."""
    directed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for a JSON file."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Schema:
        """From what :meth:`as_dict` gave, also after a round through JSON."""

        def column(value: dict[str, Any]) -> ColumnSchema:
            categories = value["categories"]
            return ColumnSchema(**{**value, "categories": None if categories is None else tuple(categories)})

        label = values["label"]
        return Schema(
            tuple(map(column, values["node"])),
            tuple(map(column, values["edge"])),
            None if label is None else column(label),
            values["label_of"],
            values["weighted"],
            values["directed"],
        )


def fit_standardization(schema: Schema, x: Tensor, edge_attr: Tensor | None) -> Schema:
    """The schema with the mean and standard deviation that each feature has in the training part.

    Args:
        schema: the schema that the features were read with.
        x: node features of the training part `[nodes, sum of the widths]`.
        edge_attr: edge features of the training part `[edges, sum of the widths]`, if there are any.
    """
    node = _fitted(schema.node, x) if schema.node else schema.node
    edge = schema.edge if edge_attr is None else _fitted(schema.edge, edge_attr)
    return replace(schema, node=node, edge=edge)


def standardize(columns: Sequence[ColumnSchema], values: Tensor) -> Tensor:
    """Features `[rows, sum of the widths]` that are still as in the files, with numbers as `(number - mean) / scale`.

    Networks learn badly from large numbers. Categories stay 0 or 1.
    """
    parts = [
        part if column.categories is not None else ((part.double() - column.mean) / column.scale).float()
        for column, part in zip(columns, _split(columns, values), strict=True)
    ]
    return torch.cat(parts, dim=1)


def _fitted(columns: Sequence[ColumnSchema], values: Tensor) -> tuple[ColumnSchema, ...]:
    """Mean and scale of each column of numbers; the scale of numbers that are all equal is 1."""
    fitted = []
    for column, part in zip(columns, _split(columns, values.double()), strict=True):
        if column.categories is None and part.numel():
            column = replace(column, mean=part.mean().item(), scale=part.std(correction=0).item() or 1.0)
        fitted.append(column)
    return tuple(fitted)


def _split(columns: Sequence[ColumnSchema], values: Tensor) -> tuple[Tensor, ...]:
    return values.split([column.width for column in columns], dim=1)
