"""ID-GNN-Full for undirected links, beyond the paper: a link has no direction, so both directions are averaged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from idgnn.identity.queries import Queries
from idgnn.models.idgnn import IDGNN
from idgnn.models.predictor import Predictor
from idgnn.models.predictor import build as build_predictor
from idgnn.models.prepared import Prepared
from idgnn.tasks.problem import Problem
from idgnn.training.settings import RunSettings


class BothEncoder(IDGNN):
    r"""ID-GNN-Full that answers a pair (u, v) by :math:`\mathbf{h}_{u|v}` and :math:`\mathbf{h}_{v|u}` side by side.

    Both come from one identity graph: twice as many queries, of which those of one color share their rows.
    """

    def prepare(  # type: ignore[override]
        self, x: Tensor, edge_index: Tensor, *, queries: Tensor | None = None, **edge: Any
    ) -> Prepared:
        """As :meth:`idgnn.IDGNN.prepare`, for pairs `[2, queries]`."""
        if queries is None or queries.dim() != 2:
            raise ValueError("both directions of pairs are read, expected queries of shape [2, num_pairs].")
        both = torch.cat([queries, queries.flip(0)], dim=1)
        ready = super().prepare(x, edge_index, queries=both, **edge)
        ahead, back = torch.arange(both.size(1), device=both.device).chunk(2)  # positions among the answers
        return replace(ready, read=Queries(ahead, back))


class BothPredictor(Predictor):
    """One linear layer on the mean of both embeddings, which is the mean of its two predictions."""

    def __init__(self, num_outputs: int, encoder: dict[str, Any]) -> None:
        super().__init__("pair", num_outputs, encoder)
        self.settings = {"num_outputs": num_outputs, "encoder": encoder}
        self.encoder = BothEncoder(**encoder)

    def forward(self, ready: Prepared, graph: Tensor, num_graphs: int) -> Tensor:
        """As :meth:`idgnn.models.predictor.Predictor.forward`."""
        ahead, back = self.encoder.run(ready).chunk(2, dim=-1)
        return self.head((ahead + back) / 2)


def build_both_directions(settings: RunSettings, problem: Problem) -> BothPredictor:
    """The network of these settings; its parameters are those of ID-GNN-Full, so the width is the same."""
    model, outputs = settings.model, problem.objective.num_outputs
    if problem.level != "pair" or model.identity != "full":
        raise ValueError(
            f"the task is about a {problem.level} and identity is {model.identity!r}, expected a task on pairs and "
            "'full': both directions of a conditional embedding are read."
        )
    full = build_predictor(model, "pair", problem.in_channels, outputs, problem.edge_dim)
    return BothPredictor(outputs, full.settings["encoder"])
