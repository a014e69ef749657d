"""Table 1: how many of 100 random d-regular graphs, which no plain GNN tells apart, ID-GNNs tell apart."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.models import Model
from idgnn.experiments.spec import MeasureJob, Protocol, Spec

NAME = "table1"
SIZES = ((64, 4), (40, 5), (96, 6))
"""Nodes and degree."""
LAYERS = (3, 4, 5, 6)
NUM_GRAPHS = 100


def specs(models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """A cell for each size (column) and number of layers (row); those of a column share one measurement.

    Nothing is trained, so neither the models nor the protocol matter: there is one for the text alone.
    """
    if protocol != "text":
        return []
    return [
        Spec(NAME, f"n{nodes}-d{degree}", f"layers-{layers}", protocol, seed, _job(nodes, degree, seed))
        for nodes, degree in SIZES
        for seed in seeds
        for layers in LAYERS
    ]


def _job(nodes: int, degree: int, seed: int) -> MeasureJob:
    return MeasureJob("regular-graphs", (("num_nodes", nodes), ("degree", degree), ("num_graphs", NUM_GRAPHS)), seed)
