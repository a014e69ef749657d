r"""The rounds that answer a few queries about a large graph, worked out on the neighborhood of what is asked.

They are those of :func:`idgnn.identity.rounds.trimmed` on the whole graph: every shortest route
:math:`v \to u \to r` of at most `K` steps, and so the cone of every color, lies within the nodes from which a query is
reached in `K` steps. The identity graph itself is not built; the rows that a row hears are looked up as rounds ask for
them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from idgnn.identity.adjacency import Links
from idgnn.identity.cone import Cone, cones, contains, join
from idgnn.identity.cost import check_room
from idgnn.identity.neighborhood import Neighborhood
from idgnn.identity.queries import Queries
from idgnn.identity.rounds import Schedule, backwards


def plain_schedule(near: Neighborhood, nodes: Tensor, num_layers: int) -> Schedule:
    """The plain states of some nodes, by their numbers in the neighborhood."""
    none = nodes.new_empty(0)
    return _schedule(near, Cone(none, none), nodes, num_layers)


def colored_schedule(near: Neighborhood, queries: Queries, num_layers: int, symmetric: bool) -> Schedule:
    """The states of some nodes under colors, by their numbers in the neighborhood of the nodes that are read.

    A node that its color does not reach is read without one; so is one whose color lies outside: the number -1.
    `symmetric` says that all edges of the whole graph are there in both directions.
    """
    num_nodes, inside = near.node.numel(), (queries.color >= 0).nonzero().flatten()
    if inside.numel() == 0:
        return plain_schedule(near, queries.node, num_layers)
    asked = queries if queries.own else Queries(queries.node[inside], queries.color[inside])
    mirrored = queries.own and symmetric and near.missing is None
    links = _mirrored_links(near) if mirrored else near.links()
    cone = join(cones(links, num_layers, asked, symmetric=mirrored))
    place, there = contains(cone.key, queries.color * num_nodes + queries.node)
    row = torch.where(there, place + num_nodes, queries.node)
    return _schedule(near, cone, row, num_layers)


def _schedule(near: Neighborhood, cone: Cone, query_row: Tensor, num_layers: int) -> Schedule:
    """Row `u` is the plain state of node u, and row `num_nodes + i` that of the i-th row of the cone."""
    into, num_nodes = near.into, near.node.numel()
    plain, own_node = torch.arange(num_nodes), cone.key % num_nodes
    check_room(num_nodes + cone.key.numel(), near.edge.numel() + int(into.degree.index_select(0, own_node).sum()))
    own_block = cone.key - own_node  # color * num_nodes
    node = torch.cat([plain, own_node])
    arrival = torch.cat([torch.zeros_like(plain), cone.arrival])
    colored = torch.cat([torch.zeros(num_nodes, dtype=torch.bool), cone.key == own_node * (num_nodes + 1)])

    def heard(targets: Tensor, depth: int) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        target_node = node.index_select(0, targets)
        owner, position = into.expand(target_node)
        source = into.neighbor.index_select(0, position)
        # Plain targets come first, and hear plain rows alone.
        first = int((targets < num_nodes).sum())
        begin = int(torch.searchsorted(owner, first))
        if first < targets.numel():
            block = own_block.index_select(0, targets[first:] - num_nodes)
            place, there = contains(cone.key, block.index_select(0, owner[begin:] - first) + source[begin:])
            there &= cone.arrival.index_select(0, place) <= depth  # before that, a row's state is the plain one
            source[begin:] = torch.where(there, place + num_nodes, source[begin:])
        previous = torch.where(arrival.index_select(0, targets) <= depth, targets, target_node)
        return (source, owner, position), previous

    return backwards(heard, query_row, node, colored, num_layers)


def _mirrored_links(near: Neighborhood) -> Links:
    """Where every edge has its reverse, the nodes that hear a node are those that it hears: nothing is sorted."""
    return Links(near.into.neighbor.new_empty(2, 0), near.node.numel(), near.into, near.into)
