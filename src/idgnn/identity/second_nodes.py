"""Which second nodes a node is read with when two nodes are colored, and which triples answer a pair.

The embedding of a node `v` is a pool over second nodes `w` of its states when `v` has the first color and `w` the
second. Second nodes are neighbors in either direction, the nodes of a ball around `v`, or all nodes that `v` is
connected with, which in a batch belong to its graph. A node without any is read under the first color alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from idgnn.choices import SecondNodesName, TwoColorOptions, check_flags
from idgnn.identity.adjacency import Adjacency, IndexedGraph, group_edges, groups, spread
from idgnn.identity.checks import check_pairs, check_whole
from idgnn.identity.cone import ball
from idgnn.identity.cost import TooLargeError, free_memory, readable
from idgnn.identity.queries import Queries, as_queries, is_triples
from idgnn.identity.walks.components import connected_components

# A triple has three ids, a number of its answer and a few more while they are sorted.
_TRIPLE_BYTES = 80
_BOTH, _COMPONENTS = "neighbors in both directions", "connected components"  # in the cache of a graph


@dataclass(frozen=True)
class Reading:
    """Queries with two colors, and the answer that each is pooled into."""

    queries: Queries
    owner: Tensor  # [queries] sorted; each answer has some
    num_answers: int

    @property
    def triples(self) -> Tensor:
        """The queries as `[3, queries]`; where there is no second node, the first one stands twice."""
        queries = self.queries
        assert queries.second is not None
        return torch.stack(
            [queries.node, queries.color, torch.where(queries.second < 0, queries.color, queries.second)]
        )


@dataclass(frozen=True)
class SecondNodes:
    """How nodes and pairs are read with two colors."""

    second: SecondNodesName = TwoColorOptions.second
    """The second nodes of a node: its neighbors, a ball around it, or all nodes that it is connected with."""
    radius: int = TwoColorOptions.radius
    """The radius of the ball."""
    with_self: bool = TwoColorOptions.with_self
    """Whether the node is read under the first color alone besides."""
    directed: bool = TwoColorOptions.directed
    """Whether (u, v) and (v, u) are different pairs."""

    def __post_init__(self) -> None:
        if self.second not in get_args(SecondNodesName):
            names = ", ".join(map(repr, get_args(SecondNodesName)))
            raise ValueError(f"second is {self.second!r}, expected one of {names}.")
        check_whole(self.radius, "radius", "the steps from a node to its second nodes")
        check_flags(self, ("with_self", "directed"))

    @property
    def node_options(self) -> str:
        """The options that matter for nodes, as they are written in a call."""
        radius = f", radius={self.radius}" if self.second == "ball" else ""
        return f"second={self.second!r}{radius}{', with_self=True' * self.with_self}"

    @property
    def pair_options(self) -> str:
        """The options that matter for pairs."""
        return f"directed={self.directed}"

    @property
    def options(self) -> str:
        """The options that differ from the defaults or always matter."""
        return self.node_options + f", {self.pair_options}" * self.directed

    def read(self, graph: IndexedGraph, queries: Tensor | None) -> Reading:
        """The triples that answer all nodes (`None`), nodes `[num_queries]`, pairs `[2, num_queries]`, or triples."""
        device = graph.into.edge.device
        if not isinstance(queries, Tensor) or queries.dim() < 2:
            return self.of_nodes(graph, as_queries(queries, graph.num_nodes, device).node)
        if is_triples(queries):
            parsed = as_queries(queries, graph.num_nodes, device)
            return Reading(parsed, torch.arange(parsed.node.numel(), device=device), parsed.node.numel())
        check_pairs(queries, graph.num_nodes)
        return self.of_pairs(queries.to(device, torch.long))

    def of_pairs(self, pairs: Tensor) -> Reading:
        """Both ends are colored and both are read.

        Without directions each end has the first color where it is read; with them `u` has it in both readings.
        """
        u, v = pairs
        node = pairs.t().flatten()  # u, v, u, v, ...
        first, second = node, pairs.flip(0).t().flatten()
        if self.directed:
            first, second = u.repeat_interleave(2), v.repeat_interleave(2)
        owner = torch.arange(u.numel(), device=u.device).repeat_interleave(2)
        return Reading(Queries(node, first, second.masked_fill(second == first, -1)), owner, u.numel())

    def of_nodes(self, graph: IndexedGraph, nodes: Tensor) -> Reading:
        """Each node, under the first color, with each of its second nodes."""
        self._check_fits(graph, nodes)
        size = max(graph.num_nodes, 1)
        owner, second = self._found(graph, nodes)
        other = second != nodes.index_select(0, owner)
        owner, second = owner[other], second[other]
        every = torch.arange(nodes.numel(), device=nodes.device)
        alone = every if self.with_self else every[torch.bincount(owner, minlength=nodes.numel()) == 0]
        # With -1, no second node, as 0: the first in the list of its node.
        key = torch.cat([alone * (size + 1), owner * (size + 1) + second + 1]).sort().values
        owner, second = key // (size + 1), key % (size + 1) - 1
        node = nodes.index_select(0, owner)
        return Reading(Queries(node, node, second), owner, nodes.numel())

    def _found(self, graph: IndexedGraph, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The second nodes of each node, each once, and the node itself or not: its position, and they."""
        if self.second == "all":
            member, ptr, component = _members(graph)
            mine = component.index_select(0, nodes)
            first = ptr.index_select(0, mine)
            owner, position = spread(first, ptr.index_select(0, mine + 1) - first)
            return owner, member.index_select(0, position)
        size = max(graph.num_nodes, 1)
        start = torch.arange(nodes.numel(), device=nodes.device) * size + nodes
        key, _ = ball(_both_ways(graph), start, self.radius if self.second == "ball" else 1, size)
        return key // size, key % size

    def most(self, graph: IndexedGraph, queries: Tensor) -> Tensor:
        """At most how many triples answer each of nodes `[num_queries]`, pairs or triples: `[num_queries]`."""
        if queries.dim() == 2:
            return queries.new_full((queries.size(1),), 2 if queries.size(0) == 2 else 1)
        if self.second == "all":
            _, ptr, component = _members(graph)
            return ptr.diff().index_select(0, component.index_select(0, queries))
        one = torch.ones_like(graph.into.degree)
        steps = self.radius if self.second == "ball" else 1
        walks = _both_ways(graph).walk_sums(one, steps).clamp(max=graph.num_nodes)
        return walks.index_select(0, queries)

    def _check_fits(self, graph: IndexedGraph, nodes: Tensor) -> None:
        """Refuses more triples than fit into the memory that is free."""
        count = self.most(graph, nodes).sum()
        needed, free = float(count) * _TRIPLE_BYTES, free_memory(nodes.device)
        if needed > free:
            raise TooLargeError(
                f"{nodes.numel():,} nodes would be read with up to {int(count):,} second nodes (second="
                f"{self.second!r}) and take {readable(needed)}, but {readable(free)} are free. Use "
                "second='neighbors' (--second neighbors), a smaller radius, or query some of the nodes at a time "
                "(queries=...; --query-batch-size 1024)."
            )


def _both_ways(graph: IndexedGraph) -> Adjacency:
    """The neighbors of every node in either direction, duplicates among them: worked out once for a graph."""
    if graph.symmetric:
        return graph.into
    if _BOTH not in graph.cache:
        into = graph.into
        target = groups(into.ptr, into.neighbor.numel())
        ends = torch.cat([target, into.neighbor]), torch.cat([into.neighbor, target])
        graph.cache[_BOTH] = group_edges(*ends, torch.cat([into.edge, into.edge]), graph.num_nodes)
    return graph.cache[_BOTH]


def _members(graph: IndexedGraph) -> tuple[Tensor, Tensor, Tensor]:
    """The nodes by component, where each component begins, and the component of each node."""
    if _COMPONENTS not in graph.cache:
        into = graph.into
        component = connected_components(into.neighbor, groups(into.ptr, into.neighbor.numel()), graph.num_nodes)
        member = torch.argsort(component, stable=True)
        count = torch.bincount(component)
        graph.cache[_COMPONENTS] = member, torch.cat([count.new_zeros(1), count.cumsum(0)]), component
    return graph.cache[_COMPONENTS]
