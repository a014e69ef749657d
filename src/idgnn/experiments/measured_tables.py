"""Tables 1 and 4 and the memory of the appendix: nothing is trained, something is counted or timed. Imports no PyTorch.

Models do not matter to them, and there is one protocol, `text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from idgnn.choices import Protocol, TableName
from idgnn.experiments.paper_table import Model, PaperTable
from idgnn.experiments.spec import MeasureJob, Spec

LAYERS = (3, 4, 5, 6)
"""The numbers of layers in Table 1."""
RUN_TIME_COLUMNS = ("forward", "forward-backward")
RUN_TIME_ROWS = {
    "gcn": "GCN",
    "fast-gcn": "ID-GNN-Fast",
    "gcn-ego": "GCN, mini-batch of ego networks",
    "full-gcn-ego": "ID-GNN-Full, ego networks as published",
    "full-gcn": "ID-GNN-Full",
}
"""What :mod:`idgnn.experiments.run_time` times: names and titles."""
_MEMORY_ROWS = {row: RUN_TIME_ROWS[row] for row in ("full-gcn-ego", "full-gcn")}
_SIZES = ((64, 4), (40, 5), (96, 6))  # nodes and degree of the regular graphs
_ROOTS = (16, 32, 64)


def _table(
    name: TableName,
    title: str,
    columns: dict[str, MeasureJob],
    rows: Iterable[tuple[str, str]],
    note: str,
    digits: int = 3,
) -> PaperTable:
    """A table whose columns are measurements; the cells of a column and a seed share one."""
    rows = tuple(rows)

    def specs(models: Sequence[Model], protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
        return [
            Spec(name, column, row, protocol, seed, replace(job, seed=seed))
            for column, job in columns.items()
            for seed in (seeds if protocol == "text" else ())
            for row, _ in rows
        ]

    return PaperTable(name, title, specs, note, row_titles=rows, digits=digits)


TABLE1 = _table(
    "table1",
    "Table 1: Regular graphs that are distinguished",
    {
        f"n{nodes}-d{degree}": MeasureJob(
            "regular-graphs", (("num_nodes", nodes), ("degree", degree), ("num_graphs", 100))
        )
        for nodes, degree in _SIZES
    },
    [(f"layers-{layers}", f"layers {layers}") for layers in LAYERS],
    "The number of different representations of 100 graphs, as a share: 1 if all are distinguished, 0.01 if none "
    "are, as by a plain GNN. The published one is of summed counts; its deviation is that of drawing 100 graphs.",
)
TABLE4 = _table(
    "table4",
    "Table 4: Run time",
    # One measurement for both columns: contenders take turns, or their times could not be compared.
    {column: MeasureJob("run-time", (("dataset", "ENZYMES"), ("graphs", 128))) for column in RUN_TIME_COLUMNS},
    RUN_TIME_ROWS.items(),
    "Milliseconds for a batch of 128 ENZYMES graphs. The paper used another machine, so compare the ratios. "
    "The published ID-GNN-Full is computed on ego networks; the last row computes the same on the identity graph.",
    digits=1,
)
MEMORY = _table(
    "memory",
    "Memory (appendix)",
    {f"roots-{roots}": MeasureJob("memory", (("dataset", "CiteSeer"), ("roots", roots))) for roots in _ROOTS},
    _MEMORY_ROWS.items(),
    "Memory of ID-GNN-Full on CiteSeer beyond that of a GNN on the shared ego networks of the roots, all their nodes "
    "in every round: 0.34 is 34 %. Ours leaves out what no round needs.",
)
