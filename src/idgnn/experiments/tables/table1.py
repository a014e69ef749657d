"""Table 1: how many regular graphs have different representations. Nothing is trained."""

from __future__ import annotations

from math import sqrt

from idgnn.experiments.readings import measured
from idgnn.experiments.spec import MeasureJob
from idgnn.experiments.table import Column, Row, Table, measurements

LAYERS = (3, 4, 5, 6)
"""The numbers of layers."""
_ROWS = tuple(Row(f"layers-{layers}", f"layers {layers}") for layers in LAYERS)
_PARTS = {"sum": "summed counts", "multiset": "counts by node", "network": "ID-GNN-Full", "plain": "plain GNN"}
# Nodes and degree of the graphs, and the published shares by number of layers.
_PUBLISHED = {(64, 4): (0.11, 0.64, 0.94, 1.0), (40, 5): (0.14, 0.82, 1.0, 1.0), (96, 6): (0.21, 0.88, 1.0, 1.0)}
_GRAPHS = 100


def _job(nodes: int, degree: int) -> MeasureJob:
    return MeasureJob("regular-graphs", (("num_nodes", nodes), ("degree", degree), ("num_graphs", _GRAPHS)))


def _column(nodes: int, degree: int, part: str) -> Column:
    return Column(
        f"n{nodes}-d{degree}-{part}",
        _PARTS[part],
        measured(lambda result, spec: result[part][spec.row.removeprefix("layers-")]),
        f"n = {nodes}, d = {degree}",
        runs=f"n{nodes}-d{degree}",
        compared=part == "sum",
    )


def _published(share: float) -> tuple[float, float]:
    """No deviation is published: this is the one of drawing so many graphs."""
    return share, sqrt(share * (1 - share) / _GRAPHS)


TABLE = Table(
    "table1",
    "Table 1: Regular graphs that are distinguished",
    _ROWS,
    tuple(_column(*size, part) for size in _PUBLISHED for part in _PARTS),
    measurements("table1", {f"n{n}-d{d}": _job(n, d) for n, d in _PUBLISHED}, [row.name for row in _ROWS]),
    {
        f"n{n}-d{d}": {row.name: _published(share) for row, share in zip(_ROWS, shares, strict=True)}
        for (n, d), shares in _PUBLISHED.items()
    },
    note="The number of different representations of 100 graphs, as a share: 1 if all are distinguished, 0.01 if none "
    "are, as by a plain GNN. The published one is of summed counts; its deviation is that of drawing 100 graphs.",
)
