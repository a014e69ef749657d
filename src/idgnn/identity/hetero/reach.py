"""Which nodes of a type the colors of others can reach: the candidates of a ranking."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.checks import check_num_layers
from idgnn.identity.hetero.forward import ForwardSearch
from idgnn.identity.hetero.graph import typed_queries
from idgnn.identity.hetero.queries import Nodes
from idgnn.identity.hetero.types import TypedGraph
from idgnn.identity.queries import Queries

Pairs = tuple[tuple[str, Tensor], tuple[str, Tensor]]


def reachable(data: HeteroData, roots: str | Nodes, target: str, num_layers: int) -> Pairs:
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
        >>> import torch
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
    queries = typed_queries(typed, roots, num_layers)
    typed.schema.check_reach(target, queries.root, num_layers)
    graph = IndexedGraph(typed.edge_index, typed.total)
    roots_of = queries.joined(typed).color
    key = ForwardSearch.of(graph, typed, target, num_layers).run(Queries(roots_of, roots_of))[0].key
    node, color = key % max(typed.total, 1), key // max(typed.total, 1)
    mine = (typed.node_type.index_select(0, node) == typed.schema.node_types.index(target)).nonzero().flatten()
    node, color = node.index_select(0, mine), color.index_select(0, mine)
    return (target, node - typed.first[target]), (queries.root, color - typed.first[queries.root])
