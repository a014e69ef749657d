"""How the columns of tables become numbers: found once from the training files, kept with the run, used again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column of a table. With categories it is one-hot coded, one number per category; without it is a number.

    A number that is a feature becomes `(number - mean) / scale`; see :mod:`idgnn.graphs.files.standardize`.
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

    node: tuple[Column, ...] = ()
    edge: tuple[Column, ...] = ()
    label: Column | None = None
    """The label: its categories are the classes, in the order of their numbers; without any it is a quantity."""
    label_of: str | None = None
    """`"node"` or `"graph"`: whose label it is."""
    weighted: bool = False
    """Whether the edges have a column `weight`, which becomes `edge_weight`."""
    directed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for a JSON file."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Schema:
        """From what :meth:`as_dict` gave, also after a round through JSON."""

        def column(value: dict[str, Any]) -> Column:
            categories = value["categories"]
            return Column(**{**value, "categories": None if categories is None else tuple(categories)})

        label = values["label"]
        return Schema(
            tuple(map(column, values["node"])),
            tuple(map(column, values["edge"])),
            None if label is None else column(label),
            values["label_of"],
            values["weighted"],
            values["directed"],
        )
