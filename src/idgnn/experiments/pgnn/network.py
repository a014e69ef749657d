"""The network of P-GNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from idgnn.experiments.pair_budget import pair_budget
from idgnn.experiments.pgnn.anchors import Anchors, find_anchors
from idgnn.identity.kept import Kept
from idgnn.identity.queries import as_queries
from idgnn.identity.rounds import Messages, Schedule, whole
from idgnn.identity.rows import plain_rows
from idgnn.models.budget import match_budget
from idgnn.models.prepared import Prepared
from idgnn.tasks.problem import Problem
from idgnn.training.settings import RunSettings

LAYERS = 2


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
        anchors: Those of all graphs that it will see.
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
            schedule = whole(plain_rows(found.closest.to(x.device), size), LAYERS)
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


def build(settings: RunSettings, problem: Problem) -> PGNN:
    """P-GNN with as many parameters as all others; anchors are drawn once, with the seed of the run."""
    if problem.level != "pair" or problem.objective.num_outputs != 1:
        raise ValueError(
            f"the task asks about a {problem.level} and has {problem.objective.num_outputs} outputs, expected link "
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
