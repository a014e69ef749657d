"""The networks and features of the code that the authors released (GraphGym), for the protocol `released`.

They differ from the paper's text in ways that change the numbers: the published numbers can only be reproduced with
them. Only :mod:`idgnn.experiments.execute` imports this module; the layers are in
:mod:`idgnn.experiments.released_layers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, global_add_pool
from torch_geometric.utils import add_remaining_self_loops

from idgnn.choices import Level
from idgnn.experiments.released_layers import released_operator
from idgnn.identity.cycle_features import cycle_features
from idgnn.layers.identity_conv import IdentityConv
from idgnn.models.idgnn import IDGNN
from idgnn.models.predictor import Predictor
from idgnn.tasks.link_prediction import LinkQuerySet
from idgnn.tasks.problem import Problem
from idgnn.tasks.query_set import QuerySet
from idgnn.training.run_settings import RunSettings

LENGTH = 10
FREQUENCIES = 5
_WAVELENGTH = 10000.0


class LinearNorm(nn.Linear):
    """The pre-layer: a linear layer without bias, then BatchNorm. On constant features it amplifies rounding noise.

    Statistics are taken over the nodes of the batch; the released code has a row for each node of each ego network.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, bias=False)
        self.norm = BatchNorm(out_channels, allow_single_element=True)

    def forward(self, input: Tensor) -> Tensor:
        """`[rows, in_channels]` to `[rows, out_channels]`."""
        return self.norm(super().forward(input))


class ReleasedEncoder(IDGNN):
    """:class:`idgnn.IDGNN` with the layers and the pre-layer of the released code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        width = settings["hidden_channels"]
        self.lin_in = LinearNorm(settings["in_channels"], width)
        for conv in self.convs:
            assert isinstance(conv, IdentityConv)
            conv.operator = released_operator(settings["conv"], width, self.identity == "full")


class ReleasedGraphHead(nn.Module):
    """Sum pooling, then a three-layer MLP; like every hidden layer of the released code these have BatchNorm."""

    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        hidden = [(LinearNorm(channels, channels), nn.ReLU()) for _ in range(2)]
        self.mlp = nn.Sequential(*hidden[0], *hidden[1], nn.Linear(channels, out_channels))

    def forward(self, x: Tensor, batch: Tensor, batch_size: int) -> Tensor:
        """`[nodes, channels]` and the graph of each node to `[graphs, out_channels]`."""
        return self.mlp(global_add_pool(x, batch, batch_size))


class ReleasedPredictor(Predictor):
    """A network of the released code; pairs are read by one linear layer, whether they have two embeddings or one."""

    encoder_class = ReleasedEncoder

    def __init__(self, level: Level, num_outputs: int, encoder: dict[str, Any]) -> None:
        super().__init__(level, num_outputs, encoder, pair_hidden=None)

    def make_head(self, num_outputs: int, pair_hidden: int | None) -> nn.Module:
        """As :meth:`idgnn.models.predictor.Predictor.make_head`."""
        if self.level == "graph":
            return ReleasedGraphHead(self.width, num_outputs)
        return super().make_head(num_outputs, pair_hidden)


def build_released(settings: RunSettings, problem: Problem) -> ReleasedPredictor:
    """The network that the released code would train; its width is given, as the authors found it.

    ID-GNN-Fast is the plain network, on a problem with more features (:func:`with_returns`).
    """
    model, level = settings.model, problem.level
    if model.width is None or model.conv == "gine":
        raise ValueError(
            f"the model has conv={model.conv!r} and width={model.width}, expected gcn, sage, gat or gin and a width: "
            "the released code gives widths, not budgets. Take the settings from a table, protocol 'released'."
        )
    encoder = {
        "in_channels": problem.in_channels,
        "hidden_channels": model.width,
        "out_channels": None,
        "num_layers": model.num_layers(level),
        "conv": model.conv,
        "identity": "full" if model.identity == "full" else "none",
    }
    return ReleasedPredictor(level, problem.objective.num_outputs, encoder)


def with_returns(settings: RunSettings, problem: Problem) -> Problem:
    """The problem with the features of ID-GNN-Fast appended to those of the nodes.

    For tasks on graphs they are encoded as waves, except on ogbg-molhiv.
    """
    if settings.model.identity != "fast":
        return problem
    parts = {"train": problem.train, **problem.held_out}
    links = settings.task.name == "link-prediction"
    features = {
        name: return_features(_with_links(part) if links else part.edge_index, part.x.size(0))
        for name, part in parts.items()
    }
    if problem.level == "graph" and settings.data != "ogbg-molhiv":
        scale = scale_of(list(features.values()))
        features = {name: waves(each, scale) for name, each in features.items()}
    train, *held_out = (
        replace(part, x=torch.cat([part.x, features[name].to(part.x)], dim=-1)) for name, part in parts.items()
    )
    return replace(problem, train=train, held_out=dict(zip(problem.held_out, held_out, strict=True)))


def _with_links(part: QuerySet) -> Tensor:
    """All edges: the released code counts before it removes the links to be predicted, so its counts contain them.

    In validation these links are among the queries, beside pairs that are not links.
    """
    if isinstance(part, LinkQuerySet):
        return torch.cat([part.edge_index, part.positives], dim=1)
    assert part.queries is not None and part.target is not None
    return torch.cat([part.edge_index, part.queries[:, part.target == 1]], dim=1)


def return_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""Diagonals of powers of the normalized adjacency with self-loops: `[num_nodes, 10]`.

    .. math:: x^+_v[k] = \big((\hat D^{-1/2} (A + I) \hat D^{-1/2})^k\big)_{vv}
        = \big((\hat D^{-1} (A + I))^k\big)_{vv}, \qquad k = 1, \dots, 10

    The second form, a similar matrix with the same diagonals, is the probability that a lazy random walk is back.
    """
    with_loops, _ = add_remaining_self_loops(edge_index, num_nodes=num_nodes)
    return cycle_features(with_loops, num_nodes, LENGTH, "walk")


def waves(features: Tensor, scale: float) -> Tensor:
    r"""Each feature as 5 cosines, then 5 sines: `[num_nodes, channels]` to `[num_nodes, channels * 10]`.

    .. math:: \cos(s\, x\, 10000^{-i/5}), \quad \sin(s\, x\, 10000^{-i/5}), \qquad i = 0, \dots, 4

    The code's position encoding with 10 dimensions; :func:`scale_of` is its :math:`s`.
    """
    rate = _WAVELENGTH ** (-torch.arange(FREQUENCIES, device=features.device, dtype=features.dtype) / FREQUENCIES)
    angle = scale * features.unsqueeze(-1) * rate  # [num_nodes, channels, frequencies]
    return torch.cat([angle.cos(), angle.sin()], dim=-1).flatten(1)


def scale_of(features: Sequence[Tensor]) -> float:
    """Half the dimensions of the encoding over the largest feature there is in the whole dataset."""
    largest = max((float(each.max()) for each in features if each.numel()), default=1.0)
    return FREQUENCIES / largest
