"""How the columns of tables become numbers: found from the training files, kept with the run, used for new files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from idgnn.graphs.sources import Missing


@dataclass(frozen=True)
class ColumnSchema:
    """A column of a table. With categories it is one-hot coded, one number per category; without it is a number.

    A number that is a feature becomes `(number - mean) / scale`; see :func:`fit_standardization`.
    """

    name: str
    categories: tuple[str, ...] | None = None
    mean: float = 0.0
    scale: float = 1.0
    missing: Missing = "error"
    """What becomes of a number that is not there; `indicator` adds a second number, 1 where it is not there."""

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        if self.categories is not None:
            return len(self.categories)
        return 2 if self.missing == "indicator" else 1

    @property
    def read_width(self) -> int:
        """How many numbers it is before the mean is known: where one may be replaced by the mean, a second says so."""
        return 2 if self.categories is None and self.missing in ("mean", "indicator") else self.width


@dataclass(frozen=True)
class Schema:
    """The columns that features and labels are made of."""

    node: tuple[ColumnSchema, ...] = ()
    edge: tuple[ColumnSchema, ...] = ()
    label: ColumnSchema | None = None
    """The label: its categories are the classes, in the order of their numbers; without any it is a quantity."""
    label_of: str | None = None
    """`"node"`, `"graph"` or `"pair"`: what has the label."""
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
    """The schema with the mean and standard deviation that each feature has in the training graphs.

    A single graph is seen as a whole, with the nodes that are held out: features are inputs, not labels.

    Args:
        schema: the schema that the features were read with.
        x: node features of the training graphs `[nodes, sum of the read widths]`.
        edge_attr: features of the edges that carry messages in training `[edges, sum of the read widths]`, if there
            are any.
    """
    node = _fitted(schema.node, x) if schema.node else schema.node
    edge = schema.edge if edge_attr is None else _fitted(schema.edge, edge_attr)
    return replace(schema, node=node, edge=edge)


def standardize(columns: Sequence[ColumnSchema], values: Tensor) -> Tensor:
    """Features `[rows, sum of the widths]` with numbers as `(number - mean) / scale`.

    `values` are still as in the files: `[rows, sum of the read widths]`. Networks learn badly from large numbers.
    Categories stay 0 or 1, and a number that is replaced by the mean becomes 0.
    """
    parts = []
    for column, part in zip(columns, _split(columns, values), strict=True):
        if column.categories is None:
            number = ((part[:, :1].double() - column.mean) / column.scale).float()
            lacks = part[:, 1:]  # [rows, 0 or 1]
            if lacks.size(1):
                number = number.masked_fill(lacks > 0, 0.0)
            part = torch.cat([number, lacks], dim=1)[:, : column.width]
        parts.append(part)
    return torch.cat(parts, dim=1)


def _fitted(columns: Sequence[ColumnSchema], values: Tensor) -> tuple[ColumnSchema, ...]:
    """Mean and scale of the numbers that are there; the scale of numbers that are all equal is 1."""
    fitted = []
    for column, part in zip(columns, _split(columns, values.double()), strict=True):
        if column.categories is not None or not part.numel():
            fitted.append(column)
            continue
        known = part[:, 0] if part.size(1) == 1 else part[part[:, 1] == 0, 0]
        if known.numel():
            column = replace(column, mean=known.mean().item(), scale=known.std(correction=0).item() or 1.0)
        fitted.append(column)
    return tuple(fitted)


def _split(columns: Sequence[ColumnSchema], values: Tensor) -> tuple[Tensor, ...]:
    return values.split([column.read_width for column in columns], dim=1)
