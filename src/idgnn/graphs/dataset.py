"""A set of graphs, and what is known about it: what all sources of graphs return."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.schema import Schema


@dataclass(frozen=True)
class Dataset:
    """Graphs under one name.

    Every graph is a PyG `Data` with `x` `[num_nodes, num_features]` (float, or bool for large one-hot tables),
    `edge_index` `[2, num_edges]` with both directions of an undirected edge, and where there are any `edge_attr`,
    `edge_weight`, `y` (`[num_nodes]` for labels of nodes, `[1]` for the label of the graph; -1 or NaN: unknown), and
    for graphs from files `node_name` (a list of strings, one per node) and `graph_name`.
    """

    name: str
    graphs: list[Data]
    schema: Schema | None = None
    """How the columns of files became numbers; `None` for graphs that do not come from tables."""
    provided_split: Mapping[str, Tensor] = field(default_factory=dict)
    """Ids of graphs for `"train"`, `"valid"`, `"test"`, if the dataset comes with a split."""

    def __len__(self) -> int:
        return len(self.graphs)

    def checksum(self) -> str:
        """SHA-256 over all tensors of all graphs: equal if and only if the content is."""
        return checksum(self.graphs)


def checksum(graphs: Iterable[Data]) -> str:
    """SHA-256 over the names, types, shapes and bytes of all tensors, in the order of the graphs."""
    digest = hashlib.sha256()
    for graph in graphs:
        digest.update(f"graph of {graph.num_nodes} nodes;".encode())
        for key, value in sorted(graph.to_dict().items()):
            if isinstance(value, Tensor):
                value = value.detach().cpu().contiguous()
                digest.update(f"{key} {value.dtype} {list(value.shape)};".encode())
                digest.update(value.view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
