"""The rows of each type that matter in each round of a model over several node types.

Those that are read longest come first, and so do the edges into them: a round takes the first rows and edges that there
are, as in :func:`idgnn.models.wrapping.plan.trimmed_plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from idgnn.identity.hetero.types import EdgeType

if TYPE_CHECKING:
    from idgnn.models.wrapping.hetero_arguments import TypedPlan


@dataclass(frozen=True)
class TypedTrim:
    """How many rows and edges of each type matter in each round; they are ordered so that those are the first ones."""

    rounds: Mapping[str, int]  # the round that each layer is, by its name
    num_targets: tuple[Mapping[str, int], ...]  # of round 1, 2, ..., K, by node type
    num_edges: tuple[Mapping[EdgeType, int], ...]


def trimmed(plan: TypedPlan, num_layers: int, rounds: Mapping[str, int]) -> TypedPlan:
    """A plan whose layers, each called once in its round, take the rows and edges that matter in it alone."""
    last = {kind: torch.full_like(nodes, -1) for kind, nodes in plan.node.items()}
    last[plan.read][plan.answer] = num_layers  # the last round after which the state of a row is read
    into: dict[EdgeType, Tensor] = {}  # that of the target of each edge
    for k in range(num_layers, 0, -1):
        known = {kind: values.clone() for kind, values in last.items()}
        for kind, (source, target) in plan.edge_index.items():
            into[kind] = known[kind[2]].index_select(0, target)
            read = source[into[kind] == k]
            last[kind[0]][read] = last[kind[0]][read].clamp(min=k - 1)
    rows = {kind: _descending(values, 0) for kind, values in last.items()}
    edges = {kind: _descending(values, 1) for kind, values in into.items()}
    place = {kind: torch.full_like(nodes, -1) for kind, nodes in plan.node.items()}
    for kind, row in rows.items():
        place[kind][row] = torch.arange(row.numel(), device=row.device)

    def ends(kind: EdgeType, index: Tensor) -> Tensor:
        source, target = index.index_select(1, edges[kind])
        return torch.stack([place[kind[0]].index_select(0, source), place[kind[2]].index_select(0, target)])

    each = range(1, num_layers + 1)
    trim = TypedTrim(
        rounds,
        tuple({kind: int((values >= k).sum()) for kind, values in last.items()} for k in each),
        tuple({kind: int((values >= k).sum()) for kind, values in into.items()} for k in each),
    )
    return replace(
        plan,
        node={kind: plan.node[kind].index_select(0, row) for kind, row in rows.items()},
        edge={kind: plan.edge[kind].index_select(0, order) for kind, order in edges.items()},
        edge_index={kind: ends(kind, index) for kind, index in plan.edge_index.items()},
        colored={kind: plan.colored[kind].index_select(0, row) for kind, row in rows.items()},
        answer=place[plan.read].index_select(0, plan.answer),
        trim=trim,
    )


def _descending(values: Tensor, least: int) -> Tensor:
    """The positions of the values that are at least so large, largest first, otherwise as they are."""
    return torch.argsort(values, descending=True, stable=True)[: int((values >= least).sum())]
