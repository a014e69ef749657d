"""The graphs that are measured, read from the raw benchmark files under the folder that `IDGNN_DATA` names."""

from __future__ import annotations

import gzip
import os
import pickle
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Batch, Data


def data_folder(*needed: str) -> Path:
    """The folder that `IDGNN_DATA` names; ends the program if it does not hold the folders that are needed."""
    folder = Path(os.environ.get("IDGNN_DATA", ""))
    if not all((folder / each).is_dir() for each in needed):
        names = " and ".join(f"{each}/" for each in needed)
        sys.exit(f"Skipped: set the environment variable IDGNN_DATA to the folder that holds {names} (raw files).")
    return folder


def tu_graphs(folder: Path, name: str) -> list[Data]:
    """The graphs of a TU dataset, with one-hot node labels as features."""
    raw = folder / "TUDataset" / name / "raw"
    edge_index = torch.from_numpy(np.loadtxt(raw / f"{name}_A.txt", delimiter=",", dtype=np.int64).T) - 1
    graph = torch.from_numpy(np.loadtxt(raw / f"{name}_graph_indicator.txt", dtype=np.int64)) - 1
    label = torch.from_numpy(np.loadtxt(raw / f"{name}_node_labels.txt", dtype=np.int64))
    return _split(edge_index, graph, one_hot(label - label.min()).float())


def picked(graphs: list[Data], number: int) -> Batch:
    """Some of the graphs, drawn with a fixed seed, as one batch."""
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))
    return Batch.from_data_list([graphs[i] for i in order[:number].tolist()])


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


class _Lists(pickle.Unpickler):
    """Reads lists of neighbors and refuses any other content of a pickle, since reading that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        """The two types that these files consist of."""
        allowed = {("collections", "defaultdict"): defaultdict, ("__builtin__", "list"): list}
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"the file names {module}.{name}, expected lists of neighbors alone.")
        return allowed[module, name]


def pubmed(folder: Path) -> Data:
    """The citation network PubMed: 19,717 nodes; both directions of every edge, none twice."""
    path = folder / "scale" / "PubMed_graph_and_labels_only" / "ind.pubmed.graph"
    with path.open("rb") as file:
        lists = _Lists(file, encoding="latin1").load()
    source = torch.tensor([node for node, others in lists.items() for _ in others])
    target = torch.tensor([other for others in lists.values() for other in others])
    return undirected(source, target, len(lists))


def gowalla(folder: Path) -> Data:
    """The training graph of Gowalla: 29,858 users and, after them, 40,981 places; 810,128 visits in both directions."""
    with gzip.open(folder / "relational" / "gowalla" / "train.txt.gz", "rt") as file:
        lines = [np.array(line.split(), dtype=np.int64) for line in file]  # a user, then the places visited
    user = np.repeat([line[0] for line in lines], [line.size - 1 for line in lines])
    place = np.concatenate([line[1:] for line in lines])
    num_users = int(user.max()) + 1
    return undirected(torch.from_numpy(user), torch.from_numpy(place) + num_users, num_users + int(place.max()) + 1)


def scale_free(num_nodes: int, mean_degree: float, largest: int, exponent: float = 2.2, seed: int = 0) -> Data:
    """A random graph with degrees from a power law that ends at a largest degree (the configuration model).

    The smallest degree is found by bisection, such that the mean is as asked for. Loops and edges that are drawn twice
    are left out, so the mean is a few percent lower, and the largest degree a sixth.
    """
    rank = (np.arange(num_nodes) + 0.5) / num_nodes

    def degrees(smallest: float) -> np.ndarray:
        low, high = smallest ** (1 - exponent), float(largest) ** (1 - exponent)
        return (high + rank * (low - high)) ** (1 / (1 - exponent))

    low, high = 0.1, mean_degree
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if degrees(middle).mean() < mean_degree else (low, middle)
    generator = torch.Generator().manual_seed(seed)
    fraction = torch.rand(num_nodes, generator=generator, dtype=torch.double)
    degree = (torch.from_numpy(degrees(low)) + fraction).long()  # rounded at random, which keeps the mean
    end = torch.arange(num_nodes).repeat_interleave(degree)
    end = end[torch.randperm(end.numel(), generator=generator)]
    half = end.numel() // 2
    return undirected(end[:half], end[half : 2 * half], num_nodes)


def undirected(source: Tensor, target: Tensor, num_nodes: int) -> Data:
    """Both directions of every edge; without loops, none twice."""
    different = source != target
    low, high = torch.minimum(source, target)[different], torch.maximum(source, target)[different]
    key = torch.unique(low * num_nodes + high)
    edge = torch.stack([key // num_nodes, key % num_nodes])
    return Data(edge_index=torch.cat([edge, edge.flip(0)], dim=1), num_nodes=num_nodes)


def _split(edge_index: Tensor, graph: Tensor, x: Tensor) -> list[Data]:
    sizes = torch.bincount(graph)
    start = sizes.cumsum(0) - sizes
    owner = graph[edge_index[0]]
    order = torch.argsort(owner, stable=True)
    edges = (edge_index - start[owner])[:, order].split(torch.bincount(owner, minlength=sizes.numel()).tolist(), dim=1)
    return [Data(x=part, edge_index=edge) for part, edge in zip(x.split(sizes.tolist()), edges, strict=True)]
