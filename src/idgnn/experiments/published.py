"""The numbers of the paper, for every cell of its tables. Imports no PyTorch.

Tables 2 and 3 are from the authors' own table of results, which has more digits than the paper; the others from the
paper's text. Shares are between 0 and 1, also those that the paper prints in per cent; times are in milliseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path

QUOTED = {
    "pgnn": "P-GNN (You et al., 2019)",
    "ppgn": "PPGN (Maron et al., 2019)",
    "ccn": "CCN (Kondor et al., 2018)",
    "1-2-3-gnn": "1-2-3 GNN (Morris et al., 2019)",
    "invariant-gns": "Invariant GNs (Maron et al., 2018)",
    "gsn": "GSN (Bouritsas et al., 2020)",
}
"""Rows of Tables 5 and 6 that the authors quote from the papers named here, or that are not their own networks."""

BEST = {"best-gnn": "GNN", "best-fast": "ID-GNN-Fast", "best-full": "ID-GNN-Full"}
"""Rows of Tables 5 and 6 that hold the best of the four networks of a family."""


@dataclass(frozen=True)
class Published:
    """A number of the paper; the deviation is over 3 splits, in Table 6 over 10 folds, in Table 4 over batches.

    Table 1 prints none: there it is that of a share of 100 graphs that are drawn at random.
    """

    mean: float
    std: float | None = None
    quoted: bool = False


def published(table: str, column: str, row: str) -> Published | None:
    """What the paper has in a cell, if anything; names are those of :class:`idgnn.experiments.spec.Spec`.

    Rows of Tables 5 and 6 are also those of :data:`QUOTED` and :data:`BEST`.

    Example:
        >>> published("table2", "node-ScaleFree", "full-gcn")
        Published(mean=0.9854, std=0.0062, quoted=False)
        >>> published("table2", "node-ScaleFree", "walks-gcn") is None
        True
    """
    cell = _cells().get(table, {}).get(column, {}).get(row)
    if cell is None:
        return None
    std = cell[1] if len(cell) > 1 else None
    if table == "table1":  # shares of 100 random graphs, without a deviation: that of drawing so many
        std = sqrt(cell[0] * (1 - cell[0]) / 100)
    return Published(cell[0], std, row in QUOTED)


@cache
def _cells() -> dict[str, dict[str, dict[str, list[float]]]]:
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
