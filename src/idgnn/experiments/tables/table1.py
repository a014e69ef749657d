"""Table 1: how many regular graphs have different representations. Nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from idgnn.choices import Protocol
from idgnn.experiments.readings import measured
from idgnn.experiments.spec import MeasureJob, Spec
from idgnn.experiments.table import Column, Row, Table

LAYERS = (3, 4, 5, 6)
"""The numbers of layers."""
_PARTS = {"sum": "summed counts", "multiset": "counts by node", "network": "ID-GNN-Full", "plain": "plain GNN"}
# Nodes and degree of the graphs, and the published shares by number of layers.
_SIZES = {
    (64, 4): (0.11, 0.64, 0.94, 1.0),
    (40, 5): (0.14, 0.82, 1.0, 1.0),
    (96, 6): (0.21, 0.88, 1.0, 1.0),
}
_GRAPHS = 100


def _name(size: tuple[int, int]) -> str:
    return f"n{size[0]}-d{size[1]}"


def _specs(protocol: Protocol, seeds: Sequence[int]) -> list[Spec]:
    """One measurement for each size and seed, which all its cells share."""
    return [
        Spec(
            "table1", _name((nodes, degree)), f"layers-{layers}", protocol, seed, MeasureJob("regular-graphs", of, seed)
        )
        for nodes, degree in _SIZES
        for of in [(("num_nodes", nodes), ("degree", degree), ("num_graphs", _GRAPHS))]
        for seed in seeds
        for layers in LAYERS
    ]


def _column(size: tuple[int, int], part: str, title: str) -> Column:
    return Column(
        f"{_name(size)}-{part}",
        title,
        measured(lambda result, spec: result[part][spec.row.removeprefix("layers-")]),
        f"n = {size[0]}, d = {size[1]}",
        runs=_name(size),
        compared=part == "sum",
    )


TABLE = Table(
    "table1",
    "Table 1: Regular graphs that are distinguished",
    tuple(Row(f"layers-{layers}", f"layers {layers}") for layers in LAYERS),
    tuple(_column(size, part, title) for size in _SIZES for part, title in _PARTS.items()),
    _specs,
    {
        _name(size): {
            # No deviation is published: this is the one of drawing so many graphs.
            f"layers-{layers}": (share, sqrt(share * (1 - share) / _GRAPHS))
            for layers, share in zip(LAYERS, shares, strict=True)
        }
        for size, shares in _SIZES.items()
    },
    note="The number of different representations of 100 graphs, as a share: 1 if all are distinguished, 0.01 if none "
    "are, as by a plain GNN. The published one is of summed counts; its deviation is that of drawing 100 graphs.",
)
