"""Table 4: run time of a batch. Nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idgnn.experiments.readings import measured
from idgnn.experiments.spec import MeasureJob
from idgnn.experiments.table import Column, Ratio, Ratios, Row, Table, measurements

PASSES = ("forward", "forward-backward")
"""What is timed; each is a column of runs."""
CONTENDERS = {
    "gcn": "GCN",
    "fast-gcn": "ID-GNN-Fast",
    "gcn-ego": "GCN, mini-batch of ego networks",
    "full-gcn-ego": "ID-GNN-Full, ego networks as published",
    "full-gcn": "ID-GNN-Full",
}
"""The networks that are timed: names and titles."""


# One measurement for both columns: contenders take turns, or their times could not be compared.
_JOB = MeasureJob("run-time", (("dataset", "ENZYMES"), ("graphs", 128)))


def _column(passes: str, replayed: bool) -> Column:
    figure = "replayed_ms" if replayed else "ms"
    return Column(
        f"{passes}-{figure}" if replayed else passes,
        passes.replace("-", " + ") + ", CUDA graphs" * replayed,
        measured(lambda result, spec: result[passes][spec.row][figure]),
        runs=passes,
        compared=not replayed,
        judged=False,  # the machine is another one
        lower_is_better=True,
        digits=1,
    )


def _ratio_to_gcn(result: Mapping[str, Any], column: Column, row: str) -> float | None:
    """The median over the turns; with CUDA graphs only on a GPU."""
    return result[column.of_runs][row].get("ratio" if column.compared else "replayed_ratio")


_GCN, _EGO, _OURS = "gcn", "full-gcn-ego", "full-gcn"

TABLE = Table(
    "table4",
    "Table 4: Run time",
    tuple(Row(name, title) for name, title in CONTENDERS.items()),
    tuple(_column(passes, replayed) for replayed in (False, True) for passes in PASSES),
    measurements("table4", dict.fromkeys(PASSES, _JOB), CONTENDERS),
    {
        "forward": {"gcn": (4.8, 0.1), "fast-gcn": (4.9, 0.1), "gcn-ego": (28.1, 0.1), "full-gcn-ego": (24.2, 4.0)},
        "forward-backward": {
            "gcn": (8.9, 0.7), "fast-gcn": (10.0, 0.6), "gcn-ego": (33.3, 0.9), "full-gcn-ego": (31.1, 0.8),
        },
    },
    note="Milliseconds for a batch of 128 ENZYMES graphs. The paper used another machine, so compare the ratios. "
    "The published ID-GNN-Full is computed on ego networks; the last row computes the same on the identity graph.",
    ratios=Ratios(
        "How many times longer the first takes than the second, on the same batch and machine, taking turns. A ratio "
        "is the median over the turns, and over seeds the median of those. The published ratio of ID-GNN-Full is that "
        "on ego networks; it is also shown beside ours, which computes the same embeddings.",
        (
            Ratio("ID-GNN-Fast : GCN", "fast-gcn", _GCN, ("fast-gcn", _GCN)),
            Ratio("GCN on ego networks : GCN", "gcn-ego", _GCN, ("gcn-ego", _GCN)),
            Ratio("ID-GNN-Full on ego networks : GCN", _EGO, _GCN, (_EGO, _GCN)),
            Ratio("ID-GNN-Full, ours : GCN", _OURS, _GCN, (_EGO, _GCN)),
            Ratio("ID-GNN-Full, ego networks : ours", _EGO, _OURS),
        ),
        _ratio_to_gcn,
    ),
)  # fmt: skip
