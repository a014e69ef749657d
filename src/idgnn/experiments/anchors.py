"""Anchor sets of P-GNN, and its batches: for every node the closest member of each set, in place of edges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from idgnn.graphs.structure import distances
from idgnn.tasks.query_set import QuerySet
from idgnn.training.batches import GraphBatch
from idgnn.training.seeds import generator_of

_DRAWN = 32  # graphs whose sets are drawn at once


def set_sizes(num_nodes: int, sets: float) -> list[int]:
    """The sizes of the sets of a graph: c log n sets of each of n/2, n/4, n/8, ..., 1 nodes (Bourgain's theorem).

    Example:
        >>> set_sizes(16, 0.5)
        [8, 8, 4, 4, 2, 2, 1, 1]
    """
    sizes = max(int(math.log2(num_nodes)), 1)
    return [max(num_nodes >> i, 1) for i in range(1, sizes + 1) for _ in range(max(int(sets * sizes), 1))]


@dataclass(frozen=True)
class PositionBatch:
    """What P-GNN is run on."""

    x: Tensor  # [nodes, channels]
    closest: Tensor  # [nodes, sets] the closest member of each set; any, where none is reached
    near: Tensor  # [nodes, sets] 1 / (distance + 1), or 0 if no member is reached
    exists: Tensor  # [nodes, sets] whether the graph has this set
    queries: Tensor  # [2, queries]


@dataclass(frozen=True)
class GraphDistances:
    """The distances in all graphs of a part, and the sizes of their sets."""

    num_nodes: Tensor  # [graphs]
    start: Tensor  # [graphs] where the pairs of each begin
    distance: Tensor  # [pairs] from each node v to each node a, row by row; -1 if v cannot be reached from a
    set_size: Tensor  # [graphs, sets] 0 where a graph has fewer
    num_sets: Tensor  # [graphs]

    @staticmethod
    def of(part: QuerySet, sets: float) -> GraphDistances:
        """Exact distances in the graph that carries messages."""
        sizes = torch.bincount(part.owner, minlength=part.num_graphs).tolist()
        edges = torch.bincount(part.owner[part.edge_index[1]], minlength=part.num_graphs).tolist()
        starts = torch.tensor([0, *sizes]).cumsum(0).tolist()
        graphs = [
            Data(edge_index=edge_index - start, num_nodes=size)
            for edge_index, start, size in zip(part.edge_index.split(edges, dim=1), starts, sizes, strict=False)
        ]
        every = [torch.cartesian_prod(torch.arange(size), torch.arange(size)).t() for size in sizes]
        found = torch.cat(distances(graphs, every, max(sizes)))
        rows = [torch.tensor(set_sizes(size, sets)) for size in sizes]
        squares = torch.tensor(sizes).square()
        return GraphDistances(
            torch.tensor(sizes),
            squares.cumsum(0) - squares,
            found,
            torch.nn.utils.rnn.pad_sequence(rows, batch_first=True),
            torch.tensor([len(row) for row in rows]),
        )

    def to(self, device: torch.device) -> GraphDistances:
        """With the distances on a device."""
        return replace(self, distance=self.distance.to(device))

    def draw(self, graphs: Tensor, generator: Generator | None = None) -> Closest:
        """Draws the sets of some graphs, ids on the CPU, and finds the closest members; ties are broken at random.

        All graphs at once: a set is the first nodes of a random order of the nodes of its graph.
        """
        device = self.distance.device
        sizes, most = self.num_nodes[graphs], int(self.num_sets[graphs].max())
        total, pairs = int(sizes.sum()), int(sizes.square().sum())
        numbers = torch.stack([sizes, sizes.cumsum(0) - sizes, self.start[graphs], sizes.square()]).to(device)
        size, first, start, square = numbers
        owner = torch.repeat_interleave(size, output_size=total)
        wanted = self.set_size[graphs, :most].to(device)[owner]  # [nodes, sets]
        random = torch.rand(total, most, generator=generator, device="cpu" if generator else device).to(device)
        order = (random + owner.unsqueeze(1) * 2.0).argsort(dim=0)  # graph by graph, each at random
        itself = torch.arange(total, device=device).unsqueeze(1).expand_as(order)
        rank = torch.empty_like(order).scatter_(0, order, itself)
        place = rank - first[owner].unsqueeze(1)  # of each node within its graph
        which = torch.repeat_interleave(square, output_size=pairs)
        within = torch.arange(pairs, device=device) - (square.cumsum(0) - square)[which]
        node, anchor = first[which] + within // size[which], first[which] + within % size[which]
        distance = self.distance[start[which] + within]
        # One number for each pair and set: a close member first, among equals the one that was drawn first.
        large = int(sizes.max()) + 1
        member = (place[anchor] < wanted[anchor]) & (distance >= 0).unsqueeze(1)  # [pairs, sets]
        value = torch.where(member, (large - distance).unsqueeze(1) * large + (large - 1 - place[anchor]), -1)
        best = value.new_full((total, most), -1).scatter_reduce(0, node.unsqueeze(1).expand_as(value), value, "amax")
        reached = best >= 0
        behind = torch.where(reached, large - 1 - best % large, 0)  # if none is reached, the first member
        found = order.gather(0, first[owner].unsqueeze(1) + behind)
        near = torch.where(reached, 1.0 / (large - best // large + 1), 0.0)
        return Closest(found, near, wanted > 0)


@dataclass(frozen=True)
class Closest:
    """The closest member of each set, for the nodes of some graphs: all `[nodes, sets]`."""

    closest: Tensor
    near: Tensor
    exists: Tensor


class AnchorSource:
    """Prepares batches for the parts of a problem.

    Args:
        parts: All parts, by name.
        sets: The c of the paper's c log^2 n sets.
        seed: Of the draw.
        redrawn: Whether the sets of the part `"train"` are drawn again for every batch; those of the others are drawn
            once.
    """

    def __init__(self, parts: Mapping[str, QuerySet], sets: float, seed: int, redrawn: bool) -> None:
        self.parts = {name: part.edge_index for name, part in parts.items()}
        self.distances = {name: GraphDistances.of(part, sets) for name, part in parts.items()}
        self.drawn = {
            name: _draw_once(found, seed, name)
            for name, found in self.distances.items()
            if not (redrawn and name == "train")
        }

    def batches(self, part: QuerySet) -> AnchorBatches:
        """Batches of one of the parts, with the queries that it has now."""
        for name, edge_index in self.parts.items():
            if _same(edge_index, part.edge_index):
                self.distances[name] = self.distances[name].to(part.x.device)
                return AnchorBatches(part, self.distances[name], self.drawn.get(name))
        raise ValueError("P-GNN has no anchors for these graphs. Build it for the problem that they are from.")


def _draw_once(found: GraphDistances, seed: int, name: str) -> Closest:
    """The sets of all graphs of a part; closest members are numbered within their graph."""
    rows, most = list[Closest](), int(found.num_sets.max())
    for graphs in torch.arange(len(found.num_nodes)).split(_DRAWN):
        drawn = found.draw(graphs, generator_of(seed, f"anchors of {name}", int(graphs[0])))
        sizes = found.num_nodes[graphs]
        first = (sizes.cumsum(0) - sizes).repeat_interleave(sizes).unsqueeze(1)
        wide = (0, most - drawn.closest.size(1))
        rows.append(Closest(*(pad(each, wide) for each in (drawn.closest - first, drawn.near, drawn.exists))))
    return Closest(*(torch.cat([getattr(row, name) for row in rows]) for name in ("closest", "near", "exists")))


class AnchorBatches:
    """Batches of a part, as :class:`idgnn.training.batches.Batches` has them."""

    def __init__(self, part: QuerySet, found: GraphDistances, drawn: Closest | None) -> None:
        assert part.queries is not None
        self.part, self.found, self.drawn = part, found, drawn
        self.device = part.x.device
        self.first = found.num_nodes.cumsum(0) - found.num_nodes
        self._num_queries = torch.bincount(part.query_owner, minlength=part.num_graphs).cpu()

    @property
    def num_items(self) -> int:
        """The number of graphs, which are assigned to batches."""
        return self.part.num_graphs

    def count(self, graphs: Tensor) -> int:
        """How many answers a batch of these graphs has."""
        return int(self._num_queries[graphs].sum())

    def each(self, assigned: Sequence[Tensor], seed: int = 0) -> Iterator[GraphBatch]:
        """A batch for each group of graphs."""
        for graphs in assigned:
            yield self.cut(graphs)

    def cut(self, graphs: Tensor) -> GraphBatch:
        """The batch of these graphs `[graphs]`, ids on the CPU."""
        few = self.part.subset(graphs)
        closest = self._kept(graphs) if self.drawn is not None else self.found.draw(graphs)
        assert few.queries is not None
        ready = PositionBatch(few.x, closest.closest, closest.near.to(few.x.dtype), closest.exists, few.queries)
        return GraphBatch(ready, few.query_owner, few.num_graphs, few.target)

    def _kept(self, graphs: Tensor) -> Closest:
        """The rows of what was drawn once."""
        assert self.drawn is not None
        size = self.found.num_nodes[graphs]
        begin = size.cumsum(0) - size
        shift = begin.repeat_interleave(size)
        rows = torch.arange(len(shift)) - shift + self.first[graphs].repeat_interleave(size)
        kept = self.drawn
        closest = kept.closest[rows] + shift.unsqueeze(1)
        return Closest(*(each.to(self.device) for each in (closest, kept.near[rows], kept.exists[rows])))


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.to(other.device), other)
