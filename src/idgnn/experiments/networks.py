"""The network of each variant of a run, and the problem as the network reads it.

Training needs no more of a network than a predictor has, or that it prepares its own batches
(:class:`idgnn.training.batches.PreparesBatches`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from idgnn.experiments.copy_sum import build_expressive
from idgnn.experiments.pair_variants import build_both_directions, build_walks
from idgnn.experiments.pgnn import build_pgnn
from idgnn.experiments.released import build_released, with_returns
from idgnn.experiments.spec import Variant
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.tasks.problem import Problem
from idgnn.training.run_settings import RunSettings

Build = Callable[[RunSettings, Problem], tuple[Any, Problem]]
"""From settings and a problem to a network, and the problem, maybe with more features."""


def _idgnn(settings: RunSettings, problem: Problem) -> tuple[Predictor, Problem]:
    outputs, symmetric = problem.objective.num_outputs, problem.symmetric
    made = make_predictor(settings.model, problem.level, problem.in_channels, outputs, problem.edge_dim, symmetric)
    return made, problem


def _released(settings: RunSettings, problem: Problem) -> tuple[Predictor, Problem]:
    with_features = with_returns(settings, problem)
    return build_released(settings, with_features), with_features


NETWORKS: dict[Variant, Build] = {
    "idgnn": _idgnn,
    "released": _released,
    "walks": lambda settings, problem: (build_walks(settings, problem), problem),
    "both-directions": lambda settings, problem: (build_both_directions(settings, problem), problem),
    "pgnn": lambda settings, problem: (build_pgnn(settings, problem, "fixed"), problem),
    "pgnn-original": lambda settings, problem: (build_pgnn(settings, problem, "original"), problem),
    "root": lambda settings, problem: (build_expressive(settings, problem, copy=False), problem),
    "copy-sum": lambda settings, problem: (build_expressive(settings, problem, copy=True), problem),
}
