"""What is asked of a heterogeneous graph: a node type, some of its nodes, or nodes of one type under colors of another.

=====================================  ==================================================================
`queries`                              what is read
=====================================  ==================================================================
`"driver"`                             every driver, each under its own color
`("driver", ids)`                      some drivers, each under its own color
`(("circuit", r), ("driver", v))`      circuit `r[i]` when driver `v[i]` is colored
=====================================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idgnn.identity.hetero.types import Schema, TypedGraph
from idgnn.identity.queries import Queries

Nodes = tuple[str, Tensor | Sequence[int] | np.ndarray]
TypedQuerySpec = str | Nodes | tuple[Nodes, Nodes]
_FORMS = 'a node type "driver", nodes ("driver", ids), or pairs (("circuit", r), ("driver", v)) of read and colored'


@dataclass(frozen=True)
class TypedQueries:
    """Node `node[i]` of type `read` when node `color[i]` of type `root` is colored."""

    read: str
    root: str
    node: Tensor  # [queries]
    color: Tensor  # [queries] the same object where each node is read under its own color

    @property
    def own(self) -> bool:
        """Whether every node is read under its own color."""
        return self.node is self.color

    @property
    def spec(self) -> TypedQuerySpec:
        """As they are written."""
        return (self.read, self.node) if self.own else ((self.read, self.node), (self.root, self.color))

    def joined(self, graph: TypedGraph) -> Queries:
        """The same among the nodes of all types."""
        node = graph.number(self.read, self.node)
        return Queries(node, node if self.own else graph.number(self.root, self.color))

    def take(self, chosen: Tensor) -> TypedQueries:
        """Some of the queries, by their positions."""
        node = self.node.index_select(0, chosen)
        return TypedQueries(self.read, self.root, node, node if self.own else self.color.index_select(0, chosen))


def as_typed_queries(queries: Any, schema: Schema, sizes: dict[str, int], device: torch.device) -> TypedQueries:
    """Queries in any of their forms, checked against the types of a graph and their numbers of nodes."""
    if queries is None:
        raise ValueError(
            f"a graph of several node types was given without queries, expected {_FORMS}; its node types are "
            f"{', '.join(map(repr, schema.node_types))}."
        )
    if isinstance(queries, TypedQueries):
        queries = queries.spec
    if isinstance(queries, str):
        schema.check_type(queries, "the queries")
        every = torch.arange(sizes[queries], device=device)
        return TypedQueries(queries, queries, every, every)
    if not isinstance(queries, (tuple, list)) or len(queries) != 2:
        raise ValueError(f"the queries are {_short(queries)}, expected {_FORMS}.")
    first, second = queries
    if isinstance(first, str):
        name, ids = _nodes(queries, schema, sizes, device, "the queries")
        return TypedQueries(name, name, ids, ids)
    if not all(isinstance(part, (tuple, list)) and len(part) == 2 for part in queries):
        raise ValueError(f"the queries are {_short(queries)}, expected {_FORMS}.")
    read, node = _nodes(first, schema, sizes, device, "the nodes that are read")
    root, color = _nodes(second, schema, sizes, device, "the nodes that are colored")
    if node.numel() != color.numel():
        raise ValueError(
            f"{node.numel()} nodes are read and {color.numel()} are colored, expected one colored node for each that "
            "is read."
        )
    return TypedQueries(read, root, node, color)


def _nodes(part: Any, schema: Schema, sizes: dict[str, int], device: torch.device, what: str) -> tuple[str, Tensor]:
    name, given = part
    schema.check_type(name, what)
    try:
        ids = given if isinstance(given, Tensor) else torch.as_tensor(np.asarray(given))
    except (TypeError, ValueError):
        ids = torch.empty(0, 0)
    if ids.dtype == torch.bool:
        raise ValueError(f"{what} are a mask of {name!r}, expected ids. Those of a mask are mask.nonzero()[:, 0].")
    empty = ids.dim() == 1 and ids.numel() == 0  # of a list without ids it is a float tensor
    if not empty and (ids.dim() != 1 or ids.is_floating_point() or ids.is_complex()):
        raise ValueError(f"{what} are {_short(given)}, expected whole numbers [num_queries]: ids of {name!r}.")
    if empty:
        raise ValueError(f"{what} are none of {name!r}, expected at least one. Pass {name!r} alone for all of them.")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= sizes[name]:
        raise ValueError(
            f"{what} name node {low if low < 0 else high} of {name!r}, which has {sizes[name]} nodes: expected ids "
            f"from 0 to {sizes[name] - 1}."
        )
    return name, ids.to(device, torch.long)


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {value.dtype} {list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
