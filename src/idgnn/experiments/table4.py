"""Table 4: run time of a batch of 128 ENZYMES graphs, forward and forward + backward."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.models import Model
from idgnn.experiments.spec import MeasureJob, Protocol, Spec

NAME = "table4"
COLUMNS = ("forward", "forward-backward")
ROWS = {
    "gcn": "GCN",
    "fast-gcn": "ID-GNN-Fast",
    "gcn-ego": "GCN, mini-batch of ego networks",
    "full-gcn-ego": "ID-GNN-Full, ego networks as published",
    "full-gcn": "ID-GNN-Full",
}
"""What :mod:`idgnn.experiments.run_time` times, and how it is called."""


def specs(models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """All cells of a seed share one measurement: contenders take turns, or their times could not be compared."""
    if protocol != "text":
        return []
    return [
        Spec(NAME, column, row, protocol, seed, MeasureJob("run-time", (("dataset", "ENZYMES"), ("graphs", 128)), seed))
        for seed in seeds
        for column in COLUMNS
        for row in ROWS
    ]
