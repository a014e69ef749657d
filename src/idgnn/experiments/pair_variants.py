"""Two networks for pairs beyond the paper.

*Walks*: ID-GNN-Fast that also reads the counts of walks between the two nodes of a pair. *Both directions*: ID-GNN-Full
for undirected links, which averages the two directions.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from idgnn.identity.walk_counts import walk_counts
from idgnn.models.budget import match_budget, num_parameters
from idgnn.models.heads import PairHead
from idgnn.models.idgnn import IDGNN
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.models.prepared import Prepared
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import Problem
from idgnn.training.run_settings import RunSettings


class WalkEncoder(IDGNN):
    r""":class:`idgnn.IDGNN` whose queries come with :math:`\log(1 + (A^k)_{uv})`, k = 1 to `cycle_length`.

    A is the graph of the messages. In link prediction it does not contain the queried edges, so the counts do not
    reveal the answer.
    """

    def prepare(  # type: ignore[override]
        self, x: Tensor, edge_index: Tensor, *, queries: Tensor | None = None, **edge: Any
    ) -> Prepared:
        """As :meth:`idgnn.IDGNN.prepare`, for pairs `[2, queries]`."""
        if queries is None or queries.dim() != 2:
            raise ValueError("walks are counted between the nodes of pairs, expected queries of shape [2, num_pairs].")
        ready = super().prepare(x, edge_index, queries=queries, **edge)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "[0-9]* of [0-9]* walk counts")  # rounded, they have the right logarithm
            counts = walk_counts(edge_index, x.size(0), queries, self.cycle_length)
        return replace(ready, pair_x=counts.log1p().to(x))


class WalkPredictor(Predictor):
    """Reads the embeddings of two nodes and the walks between them, side by side, through the MLP of ID-GNN-Fast."""

    encoder_class = WalkEncoder

    def __init__(self, num_outputs: int, encoder: dict[str, Any], pair_hidden: int = 256) -> None:
        super().__init__("pair", num_outputs, encoder, pair_hidden)
        self.settings = {"num_outputs": num_outputs, "encoder": encoder, "pair_hidden": pair_hidden}

    def make_head(self, num_outputs: int, pair_hidden: int | None) -> PairHead:
        """As :meth:`idgnn.models.predictor.Predictor.make_head`, for embeddings and counts side by side."""
        return PairHead(self.pair_channels + self.encoder.cycle_length, num_outputs, pair_hidden, self.act)

    def forward(self, ready: Prepared, graph: Tensor, num_graphs: int) -> Tensor:
        """As :meth:`idgnn.models.predictor.Predictor.forward`."""
        assert ready.pair_x is not None
        return self.head(torch.cat([self.encoder.run(ready), ready.pair_x], dim=-1))


def build_walks(settings: RunSettings, problem: Problem) -> WalkPredictor:
    """The network of these settings, with as many parameters as the other models."""
    model, outputs = settings.model, problem.objective.num_outputs
    if problem.level != "pair" or model.identity == "full":
        raise ValueError(
            f"the task is about a {problem.level} and identity is {model.identity!r}, expected a task on pairs and "
            "'fast' or 'none': walk counts are for networks that embed the two nodes separately."
        )

    def network(width: int) -> WalkPredictor:
        return WalkPredictor(outputs, model.encoder("pair", problem.in_channels, width, problem.edge_dim).as_dict())

    if model.width is not None:
        return network(model.width)
    return network(match_budget(network, pair_budget(model, problem.in_channels, outputs), tolerance=0.1))


def pair_budget(settings: ModelSettings, in_channels: int, num_outputs: int) -> int:
    """Parameters of a network for pairs: those of a plain GCN with one linear layer as a head.

    :func:`idgnn.models.predictor.make_predictor` matches the same number.
    """
    layers = settings.num_layers("pair")
    gcn = replace(settings.plain_gcn(), width=settings.budget, layers=layers)
    with torch.device("meta"):
        return num_parameters(make_predictor(gcn, "node", in_channels, num_outputs, None))


def build_both_directions(settings: RunSettings, problem: Problem) -> Predictor:
    """The network of these settings; its parameters are those of ID-GNN-Full, so the width is the same."""
    model, outputs = settings.model, problem.objective.num_outputs
    if problem.level != "pair" or model.identity != "full":
        raise ValueError(
            f"the task is about a {problem.level} and identity is {model.identity!r}, expected a task on pairs and "
            "'full': both directions of a conditional embedding are read."
        )
    return make_predictor(replace(model, symmetric=True), "pair", problem.in_channels, outputs, problem.edge_dim)
