"""The memory of the appendix: ID-GNN-Full beside a GNN on shared ego networks. Nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.choices import Protocol
from idgnn.experiments.readings import measured
from idgnn.experiments.spec import MeasureJob, Spec
from idgnn.experiments.table import Column, Row, Table

_PUBLISHED = {16: 0.34, 32: 0.79, 64: 1.62}  # by number of roots
_ROWS = (Row("full-gcn-ego", "ID-GNN-Full, ego networks as published"), Row("full-gcn", "ID-GNN-Full"))


def _specs(protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """One measurement for each number of roots and seed, which both rows share."""
    return [
        Spec(
            "memory",
            f"roots-{roots}",
            row.name,
            protocol,
            seed,
            MeasureJob("memory", (("dataset", "CiteSeer"), ("roots", roots)), seed),
        )
        for roots in _PUBLISHED
        for seed in seeds
        for row in _ROWS
    ]


TABLE = Table(
    "memory",
    "Memory (appendix)",
    _ROWS,
    tuple(
        Column(
            f"roots-{roots}",
            f"roots: {roots}",
            measured(lambda result, spec: result["overhead"][spec.row]),
            judged=False,  # it is counted in another way
            lower_is_better=True,
        )
        for roots in _PUBLISHED
    ),
    _specs,
    {f"roots-{roots}": {"full-gcn-ego": (overhead,)} for roots, overhead in _PUBLISHED.items()},
    note="Memory of ID-GNN-Full on CiteSeer beyond that of a GNN on the shared ego networks of the roots, all their "
    "nodes in every round: 0.34 is 34 %. Ours leaves out what no round needs.",
)
