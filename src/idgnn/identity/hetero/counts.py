"""Walk counts of heterogeneous graphs, over all edge types or along a meta-path: ID-GNN-Fast.

A meta-path is a chain of edge types, each of which starts where the one before it ended. Its walks are those of a graph
with a copy of the nodes for each place in the chain, in which an edge leads from one place to the next: the counts are
those of that graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.identity.checks import check_count_options
from idgnn.identity.cycle_counts import cycle_counts
from idgnn.identity.hetero.queries import TypedQuerySpec, as_typed_queries
from idgnn.identity.hetero.types import EdgeType, TypedGraph
from idgnn.identity.walk_counts import walk_counts

MetaPath = Sequence[EdgeType]


def hetero_cycle_counts(
    data: HeteroData, root: str, length: int, meta_path: MetaPath | None, memory: int, progress: bool
) -> Tensor:
    """:func:`idgnn.cycle_counts` at the nodes of one type."""
    typed = TypedGraph.of_data(data)
    typed.schema.check_type(root, "the closed walks")
    check_count_options(typed.total, length, memory)
    if meta_path is None:
        counts = cycle_counts(typed.edge_index, typed.total, length, memory=memory, progress=progress)
        return counts[typed.first[root] : typed.first[root] + typed.size[root]]
    edge_index, num_nodes, steps, closed = _unrolled(typed, meta_path)
    if not closed or meta_path[0][0] != root:
        raise ValueError(
            f"the meta-path leads from {meta_path[0][0]!r} to {meta_path[-1][2]!r}, expected one from {root!r} back to "
            f"{root!r}."
        )
    counts = cycle_counts(edge_index, num_nodes, steps * length, memory=memory, progress=progress)
    return counts[: typed.size[root], steps - 1 :: steps].contiguous()


def hetero_walk_counts(
    data: HeteroData, queries: TypedQuerySpec, length: int, meta_path: MetaPath | None, memory: int, progress: bool
) -> Tensor:
    """:func:`idgnn.walk_counts` from the nodes that are read to those that are colored."""
    typed = TypedGraph.of_data(data)
    check_count_options(typed.total, length, memory)
    parsed = as_typed_queries(queries, typed.schema, typed.size, typed.edge_index.device)
    if meta_path is None:
        joined = parsed.joined(typed)
        pairs = torch.stack([joined.node, joined.color])
        return walk_counts(typed.edge_index, typed.total, pairs, length, memory=memory, progress=progress)
    edge_index, num_nodes, steps, closed = _unrolled(typed, meta_path)
    if (meta_path[0][0], meta_path[-1][2]) != (parsed.read, parsed.root):
        raise ValueError(
            f"the meta-path leads from {meta_path[0][0]!r} to {meta_path[-1][2]!r}, but the pairs from {parsed.read!r} "
            f"to {parsed.root!r}."
        )
    if not closed and length != 1:
        raise ValueError(
            f"length is {length}, but a meta-path from {parsed.read!r} to {parsed.root!r} can be walked only once. Use "
            "length=1."
        )
    end = parsed.color if closed else parsed.color + num_nodes - typed.size[parsed.root]
    pairs = torch.stack([parsed.node, end])
    counts = walk_counts(edge_index, num_nodes, pairs, steps * length, memory=memory, progress=progress)
    return counts[:, steps - 1 :: steps].contiguous()


def _unrolled(typed: TypedGraph, meta_path: Any) -> tuple[Tensor, int, int, bool]:
    """The graph of a meta-path, its number of nodes and of steps, and whether it ends at the type it starts from.

    Nodes are numbered place by place; of a path that ends where it starts, the last place is the first one.
    """
    path = list(meta_path)
    if not path or not all(step in typed.schema.edge_types for step in path):
        wrong = next((step for step in path if step not in typed.schema.edge_types), None)
        raise ValueError(
            f"the meta-path is {meta_path!r}{f', and {wrong!r} is no edge type of the graph' if path else ''}; "
            f"expected a chain of edge types, of which there are {list(typed.schema.edge_types)}."
        )
    for one, other in pairwise(path):
        if one[2] != other[0]:
            raise ValueError(f"in the meta-path, {other} does not start from {one[2]!r}, where {one} ends.")
    closed = path[0][0] == path[-1][2]
    kinds = [step[0] for step in path] + ([] if closed else [path[-1][2]])
    starts = [sum(typed.size[kind] for kind in kinds[:place]) for place in range(len(kinds) + 1)]
    parts = []
    for place, step in enumerate(path):
        first = typed.first_edges[step]
        count = typed.num_edges[typed.schema.edge_types.index(step)]
        source, target = typed.edge_index[:, first : first + count]
        after = (place + 1) % len(kinds)
        parts.append(
            torch.stack([source - typed.first[step[0]] + starts[place], target - typed.first[step[2]] + starts[after]])
        )
    return torch.cat(parts, dim=1), starts[-1], len(path), closed
