"""Table 5: P-GNN (You, Ying, Leskovec, 2019) beside the best networks of Table 3 on link prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from idgnn.choices import Protocol
from idgnn.experiments.expectations import BetterThan
from idgnn.experiments.paper_models import BEST, GNNS, PAPER, rows_of
from idgnn.experiments.protocols import Setup
from idgnn.experiments.spec import Spec, TrainJob, Variant
from idgnn.experiments.table import Row, Table
from idgnn.experiments.tables import table3

PGNN = "pgnn"
"""The row of P-GNN as its authors have it."""
FIXED = "pgnn-fixed"
"""The row of P-GNN with anchors that are drawn once."""
_COLUMNS = tuple(column for column in table3.COLUMNS if column.name in ("link-ENZYMES", "link-PROTEINS"))


def _specs(protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """P-GNN, and the models of the paper from which the best are taken: their jobs are those of Table 3."""
    found = []
    for column in _COLUMNS:
        setup = replace(column.setups[protocol], models=PAPER)
        forms: tuple[tuple[str, Variant], ...] = ((PGNN, "pgnn-original"), (FIXED, "pgnn"))
        for row, variant in forms:
            found += [Spec("table5", column.name, row, protocol, seed, _pgnn(setup, seed, variant)) for seed in seeds]
        found += replace(column, setups={protocol: setup}, beyond={}).specs("table5", protocol, seeds)
    return found


def _pgnn(setup: Setup, seed: int, variant: Variant) -> TrainJob:
    """Data, split and training of the other models; as many parameters as the GCN that sets the budget."""
    settings = setup.job(GNNS[0], seed).settings
    model = replace(settings.model, width=None, budget=settings.model.width or settings.model.budget, aggr="max")
    return TrainJob(replace(settings, model=model), variant)


TABLE = Table(
    "table5",
    "Table 5: Link prediction beside P-GNN",
    (
        *BEST, Row(PGNN, "P-GNN (You et al., 2019)", "Others"),
        Row(FIXED, "P-GNN with fixed anchors", "Others", beyond=True), *rows_of(PAPER),
    ),
    tuple(column.shown for column in _COLUMNS),
    _specs,
    {
        "link-ENZYMES": {
            "best-gnn": (0.654, 0.015), "pgnn": (0.715, 0.024), "best-fast": (0.718, 0.01), "best-full": (0.846, 0.01),
        },
        "link-PROTEINS": {
            "best-gnn": (0.667, 0.002), "pgnn": (0.81, 0.013), "best-fast": (0.724, 0.015), "best-full": (0.886, 0.015),
        },
    },
    ("text", "released", "recommended"),
    expectations=(
        BetterThan(
            "beside-pgnn",
            "ID-GNN-Full and P-GNN",
            "ROC AUC of link prediction. Expected: the best of the four ID-GNN-Full is above P-GNN, as in Table 5.",
            "best-full",
            PGNN,
            "Table 5: ID-GNN-Full above P-GNN",
        ),
    ),
)  # fmt: skip
