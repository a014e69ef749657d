"""Which nodes of a type the colors of others can reach: the candidates of a ranking."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.checks import check_num_layers
from idgnn.identity.cone import CHUNK, cut
from idgnn.identity.hetero_graph import typed_queries
from idgnn.identity.hetero_queries import Nodes
from idgnn.identity.hetero_types import TypedGraph


def reachable(data: HeteroData, roots: str | Nodes, target: str, num_layers: int) -> tuple[Nodes, Nodes]:
    """Every node of type `target` that the color of a root can reach in `num_layers` rounds, as queries.

    Args:
        data: The graph.
        roots: A node type, or nodes `("driver", ids)`.
        target: The node type that is read.
        num_layers: The number of rounds of message passing.

    Returns:
        `((target, r), (root type, v))`, sorted by root and by target: what :func:`idgnn.identity_graph`, wrapped models
        and :class:`idgnn.HeteroIDGNN` take as queries. A root that reaches nothing has no pair.

    Example:
        >>> data = HeteroData()
        >>> data["user"].num_nodes, data["item"].num_nodes = 2, 3
        >>> data["user", "buys", "item"].edge_index = torch.tensor([[0, 0, 1], [0, 1, 1]])
        >>> data["item", "bought_by", "user"].edge_index = torch.tensor([[0, 1, 1], [0, 0, 1]])
        >>> (_, items), (_, users) = reachable(data, ("user", [1]), "item", num_layers=3)
        >>> items.tolist(), users.tolist()
        ([0, 1], [1, 1])
    """
    check_num_layers(num_layers)
    typed = TypedGraph.of_data(data)
    typed.schema.check_type(target, "the targets")
    asked = typed_queries(typed, roots, num_layers)
    typed.schema.check_reach(target, asked.root, num_layers)
    colors = torch.unique(asked.color)
    graph = IndexedGraph(typed.edge_index, typed.total)
    steps = typed.schema.steps_to(target)  # what is too far from the target type by then leads nowhere
    left = torch.tensor([steps.get(name, num_layers + 1) for name in typed.schema.node_types], device=colors.device)
    left = left.index_select(0, typed.node_type)  # [nodes]
    # A color looks at no more neighbors than there are edges, nor than there are walks.
    work = graph.out.walk_sums(torch.ones_like(left), num_layers).clamp(max=graph.out.neighbor.numel() + typed.total)
    work = work.index_select(0, typed.number(asked.root, colors))
    found = [colors[:0]]
    for first, last in cut(work, CHUNK):
        found.append(_reached(graph, typed.number(asked.root, colors[first:last]), num_layers, left))
    key = torch.cat(found)
    node, color = key % max(typed.total, 1), key // max(typed.total, 1)
    mine = (typed.node_type.index_select(0, node) == typed.schema.node_types.index(target)).nonzero().flatten()
    node, color = node.index_select(0, mine), color.index_select(0, mine)
    return (target, node - typed.first[target]), (asked.root, color - typed.first[asked.root])


def _reached(graph: IndexedGraph, colors: Tensor, num_layers: int, left: Tensor) -> Tensor:
    """The rows that the colors reach, among those from which it is `left` steps to the target type: sorted keys."""
    size = graph.num_nodes
    key = frontier = colors * size + colors
    for step in range(1, num_layers + 1):
        owner, position = graph.out.expand(frontier % size)
        neighbor = graph.out.neighbor.index_select(0, position)
        near = (left.index_select(0, neighbor) <= num_layers - step).nonzero().flatten()
        block = (frontier // size * size).index_select(0, owner.index_select(0, near))
        seen = torch.unique(torch.cat([key, block + neighbor.index_select(0, near)]))
        fresh = torch.ones_like(seen, dtype=torch.bool)
        fresh[torch.searchsorted(seen, key)] = False
        key, frontier = seen, seen[fresh]
        if frontier.numel() == 0:
            break
    return key
