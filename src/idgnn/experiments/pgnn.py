"""P-GNN (You, Ying, Leskovec, 2019), position-aware graph neural networks: the comparison of Table 5.

It passes no messages between neighbors: a node reads the closest nodes of random *anchor sets*, weighted by their
distance, and its embedding has one number for each set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import normalize
from torch_geometric.data import Data

from idgnn.experiments.pair_variants import pair_budget
from idgnn.graphs.structure import distances
from idgnn.identity.kept import Kept
from idgnn.identity.queries import as_queries
from idgnn.identity.schedule import Messages, RowGraph, Schedule, whole
from idgnn.models.budget import match_budget
from idgnn.models.prepared import Prepared
from idgnn.tasks.problem import Problem
from idgnn.tasks.query_set import QuerySet
from idgnn.training.run_settings import RunSettings
from idgnn.training.seeds import generator_of

LAYERS = 2
SETS = 0.5
"""The c of the paper's c log^2 n sets."""


@dataclass(frozen=True)
class Anchors:
    """For every node of the graphs of a part: the closest member of each anchor set, and how close it is."""

    edge_index: Tensor  # [2, edges] of the part, by which it is recognized
    closest: Tensor  # [closest, node], one column for each node and set: [2, nodes and sets]
    weight: Tensor  # [nodes and sets] 1 / (distance + 1), or 0 if no member is reached
    number: Tensor  # [nodes and sets] the number of the set, within its graph

    @property
    def num_sets(self) -> int:
        """The most sets of any graph."""
        return int(self.number.max()) + 1


def anchor_sets(num_nodes: int, generator: Generator) -> list[Tensor]:
    r"""c log n sets of each of the sizes n/2, n/4, n/8, ..., 1, drawn at random (Bourgain's theorem).

    Example:
        >>> [len(members) for members in anchor_sets(16, torch.Generator().manual_seed(0))]
        [8, 8, 4, 4, 2, 2, 1, 1]
    """
    sizes = max(int(math.log2(num_nodes)), 1)
    times = max(int(SETS * sizes), 1)
    return [
        torch.randperm(num_nodes, generator=generator)[: max(num_nodes >> i, 1)]
        for i in range(1, sizes + 1)
        for _ in range(times)
    ]


def find_anchors(part: QuerySet, name: str, seed: int) -> Anchors:
    """Draws the sets of every graph, and measures exact distances in the graph that carries messages."""
    sizes = torch.bincount(part.owner, minlength=part.num_graphs).tolist()
    edges = torch.bincount(part.owner[part.edge_index[1]], minlength=part.num_graphs).tolist()
    starts = torch.tensor([0, *sizes]).cumsum(0).tolist()
    graphs = [
        Data(edge_index=edge_index - start, num_nodes=size)
        for edge_index, start, size in zip(part.edge_index.split(edges, dim=1), starts, sizes, strict=False)
    ]
    every = [torch.cartesian_prod(torch.arange(size), torch.arange(size)).t() for size in sizes]
    closest, weight, number = [], [], []
    for i, found in enumerate(distances(graphs, every, max(sizes))):
        found = found.view(sizes[i], sizes[i])  # [node, anchor]
        near = torch.where(found < 0, 0.0, 1.0 / (found + 1))
        sets = anchor_sets(sizes[i], generator_of(seed, f"anchors of {name}", i))
        nodes = torch.arange(sizes[i])
        for which, members in enumerate(sets):
            best = near[:, members].max(dim=1)
            closest.append(torch.stack([members[best.indices], nodes]) + starts[i])
            weight.append(best.values)
            number.append(torch.full_like(nodes, which))
    return Anchors(part.edge_index, torch.cat(closest, dim=1), torch.cat(weight), torch.cat(number))


class PGNNLayer(nn.Module):
    r"""One layer, with :math:`a_i(v)` the member of anchor set i that is closest to v and d their distance:

    .. math::
        \mathbf{m}_{vi} &= \textsc{ReLU}\Big(\mathbf{W}\, \textsc{Concat}\Big(\frac{1}{d + 1} \mathbf{h}_{a_i(v)},
            \mathbf{h}_v\Big) + \mathbf{b}\Big) \\
        \mathbf{h}_v' &= \textsc{Mean}_i\, \mathbf{m}_{vi}, \qquad z_v[i] = \mathbf{w}^\top \mathbf{m}_{vi} + c
    """

    def __init__(self, channels: int, last: bool) -> None:
        super().__init__()
        self.lin_anchor = nn.Linear(channels, channels, bias=False)
        self.lin_self = nn.Linear(channels, channels)
        self.lin_position = nn.Linear(channels, 1) if last else None

    def forward(self, h: Tensor, messages: Messages, weight: Tensor) -> Tensor:
        """States `[nodes, channels]` to states, or in the last layer to positions `[messages]`."""
        target = messages.target
        near = weight[messages.edge].unsqueeze(-1) * self.lin_anchor(h).index_select(0, messages.source)
        own = self.lin_self(h).index_select(0, target)  # W acts on nodes, which are fewer than messages
        sent = (near + own).relu()  # [messages, channels]
        if self.lin_position is not None:
            return self.lin_position(sent).squeeze(-1)
        degree = messages.ptr.diff().clamp(min=1).unsqueeze(-1)
        return h.new_zeros(degree.size(0), h.size(1)).index_add(0, target, sent) / degree


class PGNNEncoder(nn.Module):
    """Embeds nodes by their position: one number for each anchor set of their graph, scaled to length 1.

    Args:
        in_channels: Number of node features.
        hidden_channels: Width of the network.
        anchors: Those of all graphs that it is trained and evaluated on.
    """

    def __init__(self, in_channels: int, hidden_channels: int, anchors: Sequence[Anchors]) -> None:
        super().__init__()
        self.anchors = tuple(anchors)
        self.num_sets = max(each.num_sets for each in anchors)
        self.lin_in = nn.Linear(in_channels, hidden_channels)
        self.layers = nn.ModuleList(PGNNLayer(hidden_channels, last=i == LAYERS - 1) for i in range(LAYERS))
        self._kept = Kept()

    def takes(self, name: Literal["edge_attr", "edge_weight"]) -> bool:
        """It reads neither."""
        return False

    def prepare(self, x: Tensor, edge_index: Tensor, *, queries: Tensor | None = None, **edge: Any) -> Prepared:
        """The anchors of these graphs as a schedule: a message comes from the closest member of each set."""
        size = x.size(0)

        def find() -> tuple[Schedule, Tensor, Tensor]:
            found = next((each for each in self.anchors if _same(each.edge_index, edge_index)), None)
            if found is None:
                raise ValueError("P-GNN has no anchors for these graphs. Build it for the problem that they are from.")
            schedule = whole(RowGraph.of_nodes(found.closest.to(x.device), size), LAYERS)
            return schedule, found.weight.to(x), found.number.to(x.device)

        schedule, weight, number = self._kept.get(edge_index, (size, x.dtype), find)
        read = None if queries is None else as_queries(queries, size, x.device)
        return Prepared(x, weight, number, schedule, read)

    def run(self, ready: Prepared) -> Tensor:
        """Positions `[nodes, num_sets]`; where a graph has fewer sets they are 0."""
        plan, number = ready.plan, ready.edge_attr
        assert isinstance(plan, Schedule) and number is not None and ready.weight is not None
        h = self.lin_in(ready.x)[plan.node]
        messages = plan.rounds[0].plain
        for layer in self.layers:
            h = layer(h, messages, ready.weight)
        place = messages.target * self.num_sets + number[messages.edge]
        positions = h.new_zeros(plan.node.numel() * self.num_sets).scatter(0, place, h).view(-1, self.num_sets)
        return normalize(positions, dim=-1)[plan.answer]


class PGNN(nn.Module):
    """Predicts a link by the inner product of two positions, as the authors do."""

    def __init__(self, in_channels: int, hidden_channels: int, anchors: Sequence[Anchors]) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"encoder": {"in_channels": in_channels, "hidden_channels": hidden_channels}}
        self.encoder = PGNNEncoder(in_channels, hidden_channels, anchors)

    def forward(self, ready: Prepared, graph: Tensor, num_graphs: int) -> Tensor:
        """Answers to all pairs `[queries, 1]`."""
        assert ready.read is not None
        z = self.encoder.run(ready)
        return (z.index_select(0, ready.read.node) * z.index_select(0, ready.read.color)).sum(-1, keepdim=True)


def build_pgnn(settings: RunSettings, problem: Problem) -> PGNN:
    """P-GNN with as many parameters as the other models; anchors are drawn once, with the seed of the run."""
    if problem.level != "pair" or problem.objective.num_outputs != 1:
        raise ValueError(
            f"the task is about a {problem.level} and has {problem.objective.num_outputs} outputs, expected link "
            "prediction: P-GNN gives one number for a pair of nodes."
        )
    parts = {"train": problem.train, **problem.held_out}
    anchors = [find_anchors(part, name, settings.seed) for name, part in parts.items()]

    def network(width: int) -> PGNN:
        return PGNN(problem.in_channels, width, anchors)

    model = settings.model
    if model.width is not None:
        return network(model.width)
    return network(match_budget(network, pair_budget(model, problem.in_channels, 1), tolerance=0.1))


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.to(other.device), other)
