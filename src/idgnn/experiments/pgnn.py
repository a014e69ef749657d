"""P-GNN (You, Ying, Leskovec, 2019), position-aware graph neural networks: the comparison of Table 5.

It passes no messages between neighbors: a node reads the closest nodes of random *anchor sets*, weighted by their
distance, and its embedding has one number for each set. There are two forms. `original` is that of the authors' code.
`fixed` has half as many sets, drawn once, the plain weight 1 / (distance + 1), and no dropout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn
from torch.nn.functional import dropout, normalize

from idgnn.experiments.anchors import AnchorBatches, AnchorSource, PositionBatch
from idgnn.experiments.pair_variants import pair_budget
from idgnn.models.budget import match_budget
from idgnn.tasks.problem import Problem
from idgnn.tasks.query_set import QuerySet
from idgnn.training.run_settings import RunSettings

LAYERS = 2
Form = Literal["original", "fixed"]


@dataclass(frozen=True)
class FormSettings:
    """How the forms differ."""

    sets: float  # the c of the paper's c log^2 n sets
    redrawn: bool  # for every graph and step in training
    distance_net: bool
    dropout: float


FORMS: dict[Form, FormSettings] = {
    "original": FormSettings(1.0, True, True, 0.5),
    "fixed": FormSettings(0.5, False, False, 0.0),
}


class PGNNLayer(nn.Module):
    r"""One layer, with :math:`a_i(v)` the member of anchor set i that is closest to v and d their distance:

    .. math::
        \mathbf{m}_{vi} &= \textsc{ReLU}\Big(\mathbf{W}\, \textsc{Concat}\Big(s\Big(\frac{1}{d + 1}\Big)
            \mathbf{h}_{a_i(v)}, \mathbf{h}_v\Big) + \mathbf{b}\Big) \\
        \mathbf{h}_v' &= \textsc{Mean}_i\, \mathbf{m}_{vi}, \qquad z_v[i] = \mathbf{w}^\top \mathbf{m}_{vi} + c

    The original s is an MLP with one hidden layer, also for sets that are not reached, where 0 takes the place of
    1 / (d + 1); the fixed s is the identity.
    """

    def __init__(self, channels: int, form: Form, last: bool) -> None:
        super().__init__()
        self.lin_anchor = nn.Linear(channels, channels, bias=False)
        self.lin_self = nn.Linear(channels, channels)
        self.lin_position = nn.Linear(channels, 1) if last else None
        self.distance_net = None
        if FORMS[form].distance_net:
            self.distance_net = nn.Sequential(nn.Linear(1, channels), nn.ReLU(), nn.Linear(channels, 1))
        if form == "original":  # Xavier with the gain of ReLU, for W as a whole
            for linear in (each for each in self.modules() if isinstance(each, nn.Linear)):
                halves = 2 if linear in (self.lin_anchor, self.lin_self) else 1
                bound = math.sqrt(2 * 6 / (halves * linear.in_features + linear.out_features))
                nn.init.uniform_(linear.weight, -bound, bound)
                if linear.bias is not None:
                    nn.init.zeros_(linear.bias)

    def forward(self, h: Tensor, batch: PositionBatch) -> Tensor:
        """States `[nodes, channels]` to states, or in the last layer to positions `[nodes, sets]`."""
        near = batch.near.unsqueeze(-1)  # [nodes, sets, 1]
        if self.distance_net is not None:
            near = self.distance_net(near)
        # W acts on nodes, which are fewer than messages.
        read = self.lin_anchor(h).index_select(0, batch.closest.flatten()).view(*batch.closest.shape, -1)
        sent = (near * read + self.lin_self(h).unsqueeze(1)).relu()  # [nodes, sets, channels]
        if self.lin_position is not None:
            return self.lin_position(sent).squeeze(-1)
        exists = batch.exists.unsqueeze(-1)
        return (sent * exists).sum(1) / exists.sum(1).clamp(min=1)


class PGNN(nn.Module):
    """Predicts a link by the inner product of two positions, as the authors do.

    Args:
        in_channels: Number of node features.
        hidden_channels: Width of the network.
        form: Which form.
        anchors: Prepares batches, for the graphs that it is trained and evaluated on.
    """

    def __init__(self, in_channels: int, hidden_channels: int, form: Form, anchors: AnchorSource) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"encoder": {"in_channels": in_channels, "hidden_channels": hidden_channels}}
        self.dropout, self.anchors = FORMS[form].dropout, anchors
        self.lin_in = nn.Linear(in_channels, hidden_channels)
        self.layers = nn.ModuleList(PGNNLayer(hidden_channels, form, last=i == LAYERS - 1) for i in range(LAYERS))

    def batches(self, part: QuerySet) -> AnchorBatches:
        """Batches of a part, with closest anchors in place of edges."""
        return self.anchors.batches(part)

    def positions(self, batch: PositionBatch) -> Tensor:
        """`[nodes, sets]`, scaled to length 1; where a graph has fewer sets they are 0."""
        h = self.lin_in(batch.x)
        for i, layer in enumerate(self.layers):
            h = layer(dropout(h, self.dropout, self.training) if i else h, batch)
        return normalize(h * batch.exists, dim=-1)

    def forward(self, ready: PositionBatch, graph: Tensor, num_graphs: int) -> Tensor:
        """Answers to all pairs `[queries, 1]`."""
        z = self.positions(ready)
        return (z.index_select(0, ready.queries[0]) * z.index_select(0, ready.queries[1])).sum(-1, keepdim=True)


def build_pgnn(settings: RunSettings, problem: Problem, form: Form = "original") -> PGNN:
    """P-GNN with as many parameters as the other models; anchors are drawn with the seed of the run."""
    if problem.level != "pair" or problem.objective.num_outputs != 1:
        raise ValueError(
            f"the task is about a {problem.level} and has {problem.objective.num_outputs} outputs, expected link "
            "prediction: P-GNN gives one number for a pair of nodes."
        )
    parts = {"train": problem.train, **problem.held_out}
    anchors = AnchorSource(parts, FORMS[form].sets, settings.seed, FORMS[form].redrawn)

    def network(width: int) -> PGNN:
        return PGNN(problem.in_channels, width, form, anchors)

    model = settings.model
    if model.width is not None:
        return network(model.width)
    return network(match_budget(network, pair_budget(model, problem.in_channels, 1), tolerance=0.1))
