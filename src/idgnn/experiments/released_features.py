"""The features of ID-GNN-Fast in the released code: they are made once for a dataset, before it is split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops

from idgnn.identity.cycle_features import cycle_features
from idgnn.tasks.links import LinkPart
from idgnn.tasks.part import Part
from idgnn.tasks.problem import Problem
from idgnn.training.settings import RunSettings

LENGTH = 10
FREQUENCIES = 5
_WAVELENGTH = 10000.0


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


def _with_links(part: Part) -> Tensor:
    """All edges: the released code counts before it removes the links to be predicted, so its counts contain them.

    In validation these links are among the queries, beside pairs that are not links.
    """
    if isinstance(part, LinkPart):
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
