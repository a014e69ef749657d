"""The graphs that are measured, read from the raw benchmark files under the folder that `IDGNN_DATA` names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Batch, Data


def tu_graphs(folder: Path, name: str) -> list[Data]:
    """The graphs of a TU dataset, with one-hot node labels as features."""
    raw = folder / "TUDataset" / name / "raw"
    edge_index = torch.from_numpy(np.loadtxt(raw / f"{name}_A.txt", delimiter=",", dtype=np.int64).T) - 1
    graph = torch.from_numpy(np.loadtxt(raw / f"{name}_graph_indicator.txt", dtype=np.int64)) - 1
    label = torch.from_numpy(np.loadtxt(raw / f"{name}_node_labels.txt", dtype=np.int64))
    return _apart(edge_index, graph, one_hot(label - label.min()).float())


def molhiv(folder: Path) -> Batch:
    """All 41,127 molecules of ogbg-molhiv in one batch, with both directions of every bond and no features."""
    raw = folder / "ogbg_molhiv" / "raw"
    nodes, bonds = (
        torch.from_numpy(np.loadtxt(raw / f"num-{what}-list.csv.gz", dtype=np.int64)) for what in ("node", "edge")
    )
    bond = torch.from_numpy(np.loadtxt(raw / "edge.csv.gz", delimiter=",", dtype=np.int64).T)
    offset = (nodes.cumsum(0) - nodes).repeat_interleave(bonds)
    bond = bond + offset
    batch = Batch(edge_index=torch.cat([bond, bond.flip(0)], dim=1), num_nodes=int(nodes.sum()))
    batch.batch = torch.arange(nodes.numel()).repeat_interleave(nodes)
    batch.ptr = torch.cat([nodes.new_zeros(1), nodes.cumsum(0)])
    return batch


def douban(folder: Path) -> Data:
    """The social network soc-douban: 154,908 nodes, 327,162 undirected edges."""
    lines = np.loadtxt(folder / "scale" / "soc-douban" / "soc-douban.mtx", skiprows=2, dtype=np.int64)
    edge = torch.from_numpy(lines[:, :2].T) - 1
    return Data(edge_index=torch.cat([edge, edge.flip(0)], dim=1), num_nodes=154908)


def _apart(edge_index: Tensor, graph: Tensor, x: Tensor) -> list[Data]:
    sizes = torch.bincount(graph)
    start = sizes.cumsum(0) - sizes
    owner = graph[edge_index[0]]
    order = torch.argsort(owner, stable=True)
    edges = (edge_index - start[owner])[:, order].split(torch.bincount(owner, minlength=sizes.numel()).tolist(), dim=1)
    return [Data(x=part, edge_index=edge) for part, edge in zip(x.split(sizes.tolist()), edges, strict=True)]
