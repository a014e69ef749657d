"""Which rows are colored in a call of a model over several node types, found by the layers that take part in it.

As in :mod:`idgnn.models.wrapping.calls` a layer finds its colors by the edges that it is given; here each edge type has
edges, and so colors, of its own: those of the rows of its source type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from idgnn.identity.hetero.types import EdgeType
from idgnn.models.wrapping.calls import Calls, ColoredRows, Context, is_edges
from idgnn.models.wrapping.hetero_trim import TypedTrim
from idgnn.models.wrapping.storage import StorageDict


@dataclass(frozen=True, eq=False)
class TypedContext:
    """What is colored for the layers that are given the edges of one type."""

    context: Context | None  # `None` if no row of the source type is colored
    colored: Mapping[str, ColoredRows | None]  # of each node type
    kind: EdgeType  # of the edges
    trim: TypedTrim | None  # `None`: all rows in all rounds
    plain_row: Mapping[str, Tensor]  # of each node type, the rows that are the original graph itself


class HeteroCalls(Calls):
    """The calls of one wrapped module over several node types, in all threads. Copies and pickles have none."""

    def __init__(self) -> None:
        super().__init__()
        self._typed: StorageDict[TypedContext] = StorageDict()
        self.joined = False  # whether the model makes one graph of all types itself

    def __reduce__(self) -> tuple[type[HeteroCalls], tuple[()], dict[str, Any]]:
        return HeteroCalls, (), {"joined": self.joined}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.joined = state["joined"]

    def own_type(self, edges: Tensor, context: TypedContext) -> None:
        """From now on a layer that is given these edges has this context."""
        self._typed.put(edges, context)

    def typed(self, edges: Any) -> TypedContext | None:
        """The context of edges of one type, if they are those of a call."""
        return self._typed.get(edges) if isinstance(edges, Tensor) and not self._local.plain else None

    def find(self, args: Any) -> Context | None:
        """The context of a layer that is called with these arguments; `None` if it is not colored."""
        if self._local.plain:
            return None
        args = tuple(args)
        for value in args:
            if is_edges(value) and (known := self._typed.get(value)) is not None:
                return known.context
        if self.joined or not self.colored:
            return super().find(args)
        if any(is_edges(value) for value in args):
            raise ValueError(
                "a layer was given edges that the model made itself, so that their types, and what is colored, are not "
                "known. Give them to the model as an edge type of edge_index_dict."
            )
        return None


def joined_rows(colored: Mapping[str, Tensor], order: tuple[str, ...]) -> ColoredRows | None:
    """The colored rows of all types in this order, as one graph has them."""
    return ColoredRows.of(torch.cat([colored[name] for name in order]))
