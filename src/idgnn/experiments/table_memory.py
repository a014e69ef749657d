"""Memory (appendix): a 3-layer ID-GNN on CiteSeer against the mini-batch GNN that shares overlapping ego networks."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.models import Model
from idgnn.experiments.spec import MeasureJob, Protocol, Spec

NAME = "memory"
ROOTS = (16, 32, 64)
ROWS = {"full-gcn-ego": "ID-GNN-Full, ego networks as published", "full-gcn": "ID-GNN-Full"}
"""Whose overhead :mod:`idgnn.experiments.memory` measures, and how it is called."""


def specs(models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """A cell for each number of roots (column) and way to compute ID-GNN-Full (row); a column is one measurement."""
    if protocol != "text":
        return []
    return [
        Spec(NAME, f"roots-{roots}", row, protocol, seed, _job(roots, seed))
        for roots in ROOTS
        for seed in seeds
        for row in ROWS
    ]


def _job(roots: int, seed: int) -> MeasureJob:
    return MeasureJob("memory", (("dataset", "CiteSeer"), ("roots", roots)), seed)
