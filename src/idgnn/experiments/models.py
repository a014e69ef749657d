"""The rows of the tables: four architectures in three versions, and what we add. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from idgnn.experiments.spec import Variant

Conv = Literal["gcn", "sage", "gat", "gin"]
Family = Literal["GNN", "ID-GNN-Fast", "ID-GNN-Full", "ID-GNN-Fast, pairs", "ID-GNN-Full, both directions"]


@dataclass(frozen=True)
class Model:
    """A row of Tables 2 and 3."""

    conv: Conv
    family: Family
    identity: Literal["none", "fast", "full"]
    variant: Variant = "idgnn"

    @property
    def name(self) -> str:
        """How it is called in records and on the command line: `gcn`, `fast-gcn`, `full-gcn`, ..."""
        prefix = {
            "GNN": "",
            "ID-GNN-Fast": "fast-",
            "ID-GNN-Full": "full-",
            "ID-GNN-Fast, pairs": "walks-",
            "ID-GNN-Full, both directions": "both-",
        }
        return prefix[self.family] + self.conv


CONVS: tuple[Conv, ...] = ("gcn", "sage", "gat", "gin")
GNNS = tuple(Model(conv, "GNN", "none") for conv in CONVS)
FAST = tuple(Model(conv, "ID-GNN-Fast", "fast") for conv in CONVS)
FULL = tuple(Model(conv, "ID-GNN-Full", "full") for conv in CONVS)
PAPER = GNNS + FAST + FULL
"""The twelve models of the paper."""
WALKS = tuple(Model(conv, "ID-GNN-Fast, pairs", "fast", "walks") for conv in CONVS)
"""Beyond the paper, for pairs: ID-GNN-Fast that also reads the walk counts of the pair."""
BOTH = tuple(Model(conv, "ID-GNN-Full, both directions", "full", "both-directions") for conv in CONVS)
"""Beyond the paper, for links: an undirected link has no direction, so both are read and averaged."""
EVERY = PAPER + WALKS + BOTH


def model(name: str) -> Model:
    """The model of that name."""
    found = {each.name: each for each in EVERY}
    if name not in found:
        raise ValueError(f"there is no model {name!r}. Expected some of {', '.join(found)}.")
    return found[name]
