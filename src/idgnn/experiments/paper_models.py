"""The networks that the tables compare: those of the paper, and two kinds beyond it. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from idgnn.experiments.expectations import Comparison, WithinNoise
from idgnn.experiments.spec import Variant
from idgnn.experiments.table import Row

Conv = Literal["gcn", "sage", "gat", "gin"]
CONVS: tuple[Conv, ...] = ("gcn", "sage", "gat", "gin")


@dataclass(frozen=True)
class Model:
    """A network. `name` is used in records and on the command line: `gcn`, `fast-gcn`, `full-gcn`, ..."""

    name: str
    conv: Conv
    family: str
    identity: Literal["none", "fast", "full"]
    variant: Variant = "idgnn"
    beyond: bool = False  # the paper
    colors: int = 1

    @property
    def row(self) -> Row:
        """Its row."""
        return Row(self.name, self.conv.upper(), self.family, beyond=self.beyond)


GNNS = tuple(Model(conv, conv, "GNN", "none") for conv in CONVS)
FAST = tuple(Model(f"fast-{conv}", conv, "ID-GNN-Fast", "fast") for conv in CONVS)
FULL = tuple(Model(f"full-{conv}", conv, "ID-GNN-Full", "full") for conv in CONVS)
PAPER = GNNS + FAST + FULL
"""The twelve models of the paper."""
WALKS = tuple(
    Model(f"walks-{conv}", conv, "ID-GNN-Fast, pairs (beyond the paper)", "fast", "walks", True) for conv in CONVS
)
"""Beyond the paper, for pairs: ID-GNN-Fast that also reads the walk counts of the pair."""
BOTH = tuple(
    Model(f"both-{conv}", conv, "ID-GNN-Full, both directions (beyond the paper)", "full", "both-directions", True)
    for conv in CONVS
)
"""Beyond the paper, for links: an undirected link has no direction, so both are read and averaged."""
TWO_COLORS = tuple(
    Model(f"two-{conv}", conv, "ID-GNN-Full, two colors (beyond the paper)", "full", beyond=True, colors=2)
    for conv in CONVS
)
"""Beyond the paper, for links: both ends are colored, each with weights of its own, and both are read."""
WALKS_NOTE = "ID-GNN-Fast, pairs (it also reads the counts of walks between the two nodes)"
BOTH_NOTE = "ID-GNN-Full, both directions (a link has no direction, so both are read and averaged)"
TWO_COLORS_NOTE = "ID-GNN-Full, two colors (both ends of a link are colored and read)"
BEYOND_NOTE = "Beyond the paper, without a published number and not part of any comparison: "

BEST = tuple(
    Row(name, f"Best {family}", "Best of four", best_of=family)
    for name, family in (("best-gnn", "GNN"), ("best-fast", "ID-GNN-Fast"), ("best-full", "ID-GNN-Full"))
)
"""Rows that hold the best of the four networks of a family."""

IDENTITY_GAIN = Comparison(
    over="GNN",
    of=("ID-GNN-Fast", "ID-GNN-Full"),
    note="ROC AUC for links and ogbg-molhiv, accuracy for all else.",
)
"""What ID-GNNs gain over GNNs."""
PLAIN_AS_RELEASED = WithinNoise(
    "plain-gnns",
    "Plain GNNs with the released settings",
    "Our mean minus the published one, and in parentheses the largest difference that is within noise. Expected: all "
    "are, because plain GNNs are the same networks in the paper and here. Within noise: Student's t-test at 95 % (both "
    "with the same spread) finds no difference between the two means of three runs. So even of equal networks, one in "
    "20 is outside. The published deviations are those of a population (n), which the test takes into account.",
    tuple(model.name for model in GNNS),
    "released",
    "Plain GNNs within noise of the published numbers",
)


def rows_of(models: tuple[Model, ...]) -> tuple[Row, ...]:
    """The rows of some models."""
    return tuple(model.row for model in models)
