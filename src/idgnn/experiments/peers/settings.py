"""Which peers there are, and the settings of their authors for each dataset. Imports no PyTorch.

Where the authors published no settings, `docs/faithfulness.md` says what was assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from idgnn.choices import check_choices, check_counts

PeerName = Literal["ppgn", "ign", "1-2-3-gnn", "gsn-v", "gsn-e", "ccn-1d", "ccn-2d"]
PEERS: tuple[PeerName, ...] = get_args(PeerName)

DATASETS = ("MUTAG-folds", "PTC-folds", "PTC_MR", "PROTEINS-folds")
"""The columns of Table 6: PTC-folds has hydrogens and the published folds, PTC_MR has neither."""


@dataclass(frozen=True)
class PeerSettings:
    """One peer on one dataset: all folds, which train side by side."""

    network: PeerName
    dataset: str
    epochs: int
    batch_size: int
    lr: float
    batches: Literal["by size", "shuffled", "drawn"] = "shuffled"
    """Graphs of similar size, all in each epoch; any graphs, all in each epoch; or any graphs, drawn for each step."""
    steps: int | None = None
    """Of an epoch, if batches are drawn."""
    loss: Literal["mean", "sum"] = "mean"
    """Over the graphs of a batch."""
    schedule: Literal["step", "plateau"] = "step"
    """The learning rate is multiplied by `decay` every `every` epochs, or when that many epochs had no better loss on a
    validation part, which is taken out of the training part."""
    decay: float = 1.0
    every: int = 20
    min_lr: float = 0.0
    validate: bool = False
    """Whether a tenth of the training part chooses the epoch."""
    width: int = 64
    dropout: float = 0.0
    pool: Literal["sum", "mean"] = "sum"
    pattern: Literal["cycle", "clique"] = "cycle"
    """Which patterns GSN counts, up to `pattern_size` nodes."""
    pattern_size: int = 6
    neighbors: Literal["malkin", "local"] = "malkin"
    """Of sets of three nodes in 1-2-3-GNN."""
    precision: Literal["float32", "bf16"] = "float32"
    """bf16: matrix products in bfloat16 (autocast); float32 products are in TF32 on CUDA."""
    folds: int = 10
    """How many of the 10 folds are trained, from the first on."""
    at_once: int = 10
    """Folds that are computed at once, for the memory of a GPU."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_counts(self, ("epochs", "batch_size", "every", "width", "folds", "at_once"))
        if (self.batches == "drawn") != (self.steps is not None):
            raise ValueError(f"batches is {self.batches!r} and steps is {self.steps}: drawn batches need steps.")
        if self.schedule == "plateau" and not self.validate:
            raise ValueError("schedule is 'plateau', which reads the loss of a validation part. Set validate.")


def peer_settings(network: PeerName, dataset: str) -> PeerSettings:
    """The authors' settings; for PTC_MR those for PTC.

    Example:
        >>> peer_settings("ppgn", "MUTAG-folds").epochs
        500
    """
    if network not in PEERS or dataset not in DATASETS:
        raise ValueError(
            f"there are no settings of {network} for {dataset}, expected one of {', '.join(PEERS)} and one of "
            f"{', '.join(DATASETS)}."
        )
    which = DATASETS.index(dataset)
    column = (0, 1, 1, 2)[which]  # MUTAG, PTC, PROTEINS
    return _SETTINGS[network](dataset, column)


def _ppgn(dataset: str, column: int) -> PeerSettings:
    lr, decay, epochs = ((1e-4, 1.0, 500), (1e-4, 1.0, 400), (1e-3, 0.5, 100))[column]
    # Products in bf16, or all folds would take an hour of the fastest GPU; weights and Adam are in float32.
    return PeerSettings(
        "ppgn", dataset, epochs, 5, lr, "by size", loss="sum", decay=decay, width=400, precision="bf16"
    )  # fmt: skip


def _ign(dataset: str, column: int) -> PeerSettings:
    lr, decay, epochs = ((0.00512, 0.7, 130), (0.00128, 0.6, 9), (0.00064, 0.7, 20))[column]
    return PeerSettings("ign", dataset, epochs, 5, lr, "by size", loss="sum", decay=decay, min_lr=1e-5)


def _k_gnn(dataset: str, column: int) -> PeerSettings:
    made = PeerSettings("1-2-3-gnn", dataset, 50, 32, 1e-3, validate=True, dropout=0.5, neighbors="local")
    if column < 2:  # no settings for PTC are published: those for MUTAG
        return made
    return replace(
        made, epochs=100, batch_size=20, schedule="plateau", decay=0.7, every=5, min_lr=1e-5, pool="mean",
        neighbors="malkin",
    )  # fmt: skip


def _gsn(network: PeerName, dataset: str, column: int) -> PeerSettings:
    batch_size, width, lr, decay, every, dropout = (
        (32, 32, 1e-3, 0.9, 50, 0.5),
        (128, 16, 1e-3, 0.5, 50, 0.0),
        (32, 32, 1e-2, 0.5, 10, 0.5),
    )[column]
    made = PeerSettings(network, dataset, 300, batch_size, lr, "drawn", 50, decay=decay, every=every, width=width)
    made = replace(made, dropout=dropout)
    if column == 2:
        return replace(made, pool="mean", pattern="clique", pattern_size=4)
    return replace(made, pattern_size=6 if network == "gsn-e" else (12, 10)[column])


def _ccn(network: PeerName, dataset: str, column: int) -> PeerSettings:
    if network == "ccn-1d":
        return PeerSettings(network, dataset, 200 if column < 2 else 50, 4, 1e-2, width=16)
    made = PeerSettings(network, dataset, 100, 8, 1e-3, width=16)
    return made if column < 2 else replace(made, epochs=30, width=8, at_once=2)  # all of them filled an H200


_SETTINGS = {
    "ppgn": _ppgn,
    "ign": _ign,
    "1-2-3-gnn": _k_gnn,
    "gsn-v": lambda dataset, column: _gsn("gsn-v", dataset, column),
    "gsn-e": lambda dataset, column: _gsn("gsn-e", dataset, column),
    "ccn-1d": lambda dataset, column: _ccn("ccn-1d", dataset, column),
    "ccn-2d": lambda dataset, column: _ccn("ccn-2d", dataset, column),
}
