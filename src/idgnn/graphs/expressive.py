"""Graphs that measure what a network can tell apart and count: plain arrays, each undirected edge once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

_BONDS = 3  # single, double, triple


def read_counting(folder: Path) -> list[Data]:
    """Random graphs with counts of patterns: `node_counts` `[num_nodes, 9]` and `graph_counts` `[1, 7]`.

    Their columns are :data:`idgnn.choices.NodePattern` and :data:`idgnn.choices.GraphPattern`. `x` is ones
    `[num_nodes, 1]`. Counts are of subgraphs, not of induced ones.
    """
    arrays = _arrays(folder / "counting.npz")
    nodes = np.diff(arrays["node_ptr"]).tolist()
    parts = zip(
        nodes,
        _edges(arrays),
        _tensor(arrays["node_y"], torch.float).split(nodes),
        _tensor(arrays["graph_y"], torch.float).split(1),
        strict=True,
    )
    return [
        Data(x=torch.ones(size, 1), edge_index=both_directions(edges), node_counts=node, graph_counts=graph)
        for size, edges, node, graph in parts
    ]


def read_zinc(folder: Path) -> list[Data]:
    """Molecules: `x` bool `[atoms, 28]` and `edge_attr` bool `[2 * bonds, 3]` one-hot, `y` `[1]` the constrained
    solubility."""
    arrays = _arrays(folder / "zinc12k_like.npz")
    x = torch.nn.functional.one_hot(_tensor(arrays["x"]), len(arrays["atom_types"])).bool()
    bond = torch.nn.functional.one_hot(_tensor(arrays["bond"]) - 1, _BONDS).bool().repeat(1, 2).view(-1, _BONDS)
    edges = _edges(arrays)
    parts = zip(
        x.split(np.diff(arrays["node_ptr"]).tolist()),
        edges,
        bond.split([2 * each.size(0) for each in edges]),
        _tensor(arrays["y"], torch.float).split(1),
        strict=True,
    )
    return [Data(x=a, edge_index=both_directions(e), edge_attr=b, y=y) for a, e, b, y in parts]


def read_expressive_split(folder: Path) -> dict[str, Tensor]:
    """The split in the file. Test molecules whose rings, and so whose label, depend on how rings are found are a part
    of their own, `"ambiguous"`."""
    arrays = _arrays(next(folder.glob("*.npz")))
    split = {"train": arrays["train"], "valid": arrays["val"], "test": arrays["test"]}
    if "ring_ambiguous" in arrays:
        ambiguous = arrays["ring_ambiguous"][split["test"]]
        split |= {"test": split["test"][~ambiguous], "ambiguous": split["test"][ambiguous]}
    return {part: _tensor(ids) for part, ids in split.items()}


def read_graph6(path: Path) -> list[Data]:
    """Graphs of fewer than 63 nodes, one per line in graph6: the size, then the upper triangle column by column, six
    bits a character. `x` is ones `[num_nodes, 1]`.

    All graphs must have the same size: then they are read at once.
    """
    codes = np.array([list(line) for line in path.read_bytes().split()], np.uint8) - 63  # [graphs, characters]
    size = int(codes[0, 0])
    if not (codes[:, 0] == size).all() or size > 62:
        raise ValueError(
            f"{path} holds graphs of different sizes, or of more than 62 nodes, expected one size up to 62."
        )
    bits = np.unpackbits(codes[:, 1:, None], axis=2)[:, :, 2:].reshape(len(codes), -1)  # [graphs, 6 * characters]
    high, low = np.tril_indices(size, -1)  # row by row of the lower triangle: the order of the format
    return [
        Data(x=torch.ones(size, 1), edge_index=both_directions(_tensor(np.stack([low[row], high[row]], axis=1))))
        for row in bits[:, : len(low)].astype(bool)
    ]


def both_directions(edges: Tensor) -> Tensor:
    """Undirected edges `[edges, 2]`, each once, as `edge_index` `[2, 2 * edges]`: each is two columns side by side."""
    return torch.stack([edges, edges.flip(1)], dim=1).view(-1, 2).t().contiguous()


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _edges(arrays: dict[str, np.ndarray]) -> tuple[Tensor, ...]:
    """The edges of each graph `[edges, 2]`."""
    return _tensor(arrays["edges"]).split(np.diff(arrays["edge_ptr"]).tolist())


def _tensor(array: np.ndarray, dtype: torch.dtype = torch.long) -> Tensor:
    return torch.from_numpy(array).to(dtype)
