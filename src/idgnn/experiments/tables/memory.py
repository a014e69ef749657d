"""The memory of the appendix: ID-GNN-Full beside a GNN on shared ego networks. Nothing is trained."""

from __future__ import annotations

from idgnn.experiments.readings import measured
from idgnn.experiments.spec import MeasureJob
from idgnn.experiments.table import Column, Row, Table, measurements

_PUBLISHED = {16: 0.34, 32: 0.79, 64: 1.62}  # by number of roots
_JOBS = {f"roots-{n}": MeasureJob("memory", (("dataset", "CiteSeer"), ("roots", n))) for n in _PUBLISHED}


def _column(roots: int) -> Column:
    read = measured(lambda result, spec: result["overhead"][spec.row])
    # It is not judged, because it is counted in another way.
    return Column(f"roots-{roots}", f"roots: {roots}", read, judged=False, lower_is_better=True)


TABLE = Table(
    "memory",
    "Memory (appendix)",
    (Row("full-gcn-ego", "ID-GNN-Full, ego networks as published"), Row("full-gcn", "ID-GNN-Full")),
    tuple(map(_column, _PUBLISHED)),
    measurements("memory", _JOBS, ("full-gcn-ego", "full-gcn")),
    {f"roots-{roots}": {"full-gcn-ego": (overhead,)} for roots, overhead in _PUBLISHED.items()},
    note="Memory of ID-GNN-Full on CiteSeer beyond that of a GNN on the shared ego networks of the roots, all their "
    "nodes in every round: 0.34 is 34 %. Ours leaves out what no round needs.",
)
