"""What is asked of a graph: every node, some nodes, pairs of nodes, or nodes under two colors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from idgnn.identity.checks import check_pairs, check_roots, check_triples


@dataclass(frozen=True)
class Queries:
    """The embedding of node `node[i]` when node `color[i]` is colored: :math:`h_{u|v}` of the paper.

    With `second` two nodes are colored, each with a color of its own. -1 is no node: the color is not used.
    """

    node: Tensor  # [num_queries]
    color: Tensor  # [num_queries]
    second: Tensor | None = None  # [num_queries] never the node that has the first color

    @property
    def own(self) -> bool:
        """Whether every node is read under its own color alone, as node and graph tasks do."""
        return self.node is self.color and self.second is None

    def take(self, chosen: Tensor) -> Queries:
        """Some of the queries, by their positions."""
        node = self.node.index_select(0, chosen)
        second = None if self.second is None else self.second.index_select(0, chosen)
        return Queries(node, node if self.node is self.color else self.color.index_select(0, chosen), second)

    def slice(self, first: int, last: int) -> Queries:
        """The queries `first ... last - 1`."""
        node = self.node[first:last]
        second = None if self.second is None else self.second[first:last]
        return Queries(node, node if self.node is self.color else self.color[first:last], second)


def as_tensor(queries: Tensor | Sequence[int] | np.ndarray | None, name: str) -> Tensor | None:
    """Nodes or pairs that may be a list or an array."""
    if queries is None or isinstance(queries, Tensor):
        return queries
    try:
        return torch.as_tensor(np.asarray(queries))
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {queries!r}, expected whole numbers: ids of nodes, or of pairs.") from None


def is_triples(queries: Any) -> TypeGuard[Tensor]:
    """Whether queries are triples `[3, num_queries]`: a node that is read, and the nodes of the two colors."""
    return isinstance(queries, Tensor) and queries.dim() == 2 and queries.size(0) == 3


def as_queries(queries: Tensor | None, num_nodes: int, device: torch.device) -> Queries:
    """All nodes (`None`), the given nodes (`[num_queries]`), pairs (`[2, num_queries]`: read, colored), or triples
    (`[3, num_queries]`: read, first color, second color)."""
    if queries is None:
        every = torch.arange(num_nodes, device=device)
        return Queries(every, every)
    if is_triples(queries):
        check_triples(queries, num_nodes)
        node, color, second = queries.to(device, torch.long).contiguous()
        return Queries(node, color, second.masked_fill(second == color, -1))
    if isinstance(queries, Tensor) and queries.dim() == 2:
        check_pairs(queries, num_nodes)
        node, color = queries.to(device, torch.long).contiguous()
        return Queries(node, color)
    check_roots(queries, num_nodes)
    roots = queries.to(device, torch.long)
    return Queries(roots, roots)
