"""Table 5: P-GNN (You, Ying, Leskovec, 2019) beside the best networks of Table 3 on link prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from idgnn.experiments import table3
from idgnn.experiments.columns import Column
from idgnn.experiments.models import GNNS, PAPER, Model
from idgnn.experiments.spec import Protocol, Spec, TrainJob

NAME = "table5"
COLUMNS = tuple(column for column in table3.COLUMNS if column.name in ("link-ENZYMES", "link-PROTEINS"))
PGNN = "pgnn"
"""The row of P-GNN."""


def specs(models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """P-GNN, and the models of the paper among which the best are looked for: their jobs are those of Table 3."""
    found = []
    for column in COLUMNS:
        found += [_pgnn(column, protocol, seed) for seed in seeds]
        found += column.specs(NAME, [model for model in models if model in PAPER], protocol, seeds)
    return found


def _pgnn(column: Column, protocol: Protocol, seed: int) -> Spec:
    """The same data, split and training as everybody; as many parameters as the GCN that sets the budget."""
    spec = column.spec(NAME, GNNS[0], protocol, seed)
    assert isinstance(spec.job, TrainJob)
    model = spec.job.settings.model
    made = replace(model, width=None, budget=model.width or model.budget, aggr="max")
    return replace(spec, row=PGNN, job=TrainJob(replace(spec.job.settings, model=made), "pgnn"))
