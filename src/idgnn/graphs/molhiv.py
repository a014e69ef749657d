"""ogbg-molhiv from OGB's own csv.gz files, without the package `ogb`."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

# How many values each column can take: OGB fixes them for all of its molecules, not only for those seen here.
# Atoms: atomic number, chirality, degree, charge, hydrogens, radical electrons, hybridization, aromatic, in a ring.
_ATOM_SIZES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
# Bonds: type, stereochemistry, conjugated.
_BOND_SIZES = (5, 6, 2)


def read_molhiv(folder: Path) -> list[Data]:
    """All molecules: `x` bool `[atoms, 174]` and `edge_attr` bool `[2 * bonds, 13]`, one-hot column by column.

    The columns of `x` are those of OGB's `AtomEncoder`: its sum of embeddings is one linear layer on `x`. Each bond is
    two edges, one after the other: there and back. `y` is 1 for a molecule that inhibits HIV, else 0.
    """
    raw = folder / "raw"
    num_nodes = _column(raw / "num-node-list.csv.gz").tolist()
    num_bonds = _column(raw / "num-edge-list.csv.gz").tolist()
    x = _one_hot(_table(raw / "node-feat.csv.gz", len(_ATOM_SIZES)), _ATOM_SIZES)
    bonds = _table(raw / "edge.csv.gz", 2)
    edge_index = np.stack([bonds, bonds[:, ::-1]], axis=1).reshape(-1, 2)  # [2 * bonds, 2]
    edge_attr = _one_hot(_table(raw / "edge-feat.csv.gz", len(_BOND_SIZES)), _BOND_SIZES).repeat_interleave(2, dim=0)
    y = torch.from_numpy(_column(raw / "graph-label.csv.gz"))
    num_edges = [2 * each for each in num_bonds]
    parts = zip(
        x.split(num_nodes),
        torch.from_numpy(edge_index).split(num_edges),
        edge_attr.split(num_edges),
        y.split(1),
        strict=True,
    )
    return [Data(x=a, edge_index=e.t().contiguous(), edge_attr=b, y=label) for a, e, b, label in parts]


def read_molhiv_split(folder: Path) -> dict[str, Tensor]:
    """The split by scaffold that comes with the dataset."""
    path = folder / "split" / "scaffold"
    return {part: torch.from_numpy(_column(path / f"{part}.csv.gz")) for part in ("train", "valid", "test")}


def _table(path: Path, columns: int) -> np.ndarray:
    """The integers of a file `[rows, columns]`. Rows have equal lengths, so line ends are separators like commas."""
    text = gzip.decompress(path.read_bytes()).decode("ascii").replace("\n", ",").rstrip(",")
    return np.fromstring(text, dtype=np.int64, sep=",").reshape(-1, columns)


def _column(path: Path) -> np.ndarray:
    return _table(path, 1)[:, 0]


def _one_hot(values: np.ndarray, sizes: Sequence[int]) -> Tensor:
    """Bool `[rows, sum(sizes)]`: each column one-hot, side by side."""
    if values.size and (values.min() < 0 or (values.max(axis=0) >= np.array(sizes)).any()):
        raise ValueError(
            f"the columns hold values up to {values.max(axis=0).tolist()}, expected less than {list(sizes)}. The files "
            "are not those of ogbg-molhiv: delete them, so that they are downloaded again."
        )
    first = np.cumsum([0, *sizes[:-1]])
    hot = torch.zeros(len(values), sum(sizes), dtype=torch.bool)
    return hot.scatter_(1, torch.from_numpy(values + first), True)
