"""Batches of whole adjacency matrices, padded to the largest graph of the batch, for PPGN and IGN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data


@dataclass(frozen=True)
class DenseBatch:
    """As many graphs for each copy of a network."""

    x: Tensor  # [copies, graphs, nodes, channels]
    adjacency: Tensor  # [copies, graphs, nodes, nodes], 0 and 1
    size: Tensor  # [copies, graphs] the nodes of each graph; the rest is padding

    @cached_property
    def real(self) -> Tensor:
        """Which nodes are no padding: `[copies, graphs, nodes]`."""
        return torch.arange(self.x.size(2), device=self.x.device) < self.size.unsqueeze(-1)

    @cached_property
    def real_pairs(self) -> Tensor:
        """Which pairs of nodes are no padding: `[copies, 1, graphs, nodes, nodes]`."""
        return (self.real.unsqueeze(-1) & self.real.unsqueeze(-2)).unsqueeze(1)


class DenseGraphs:
    """All graphs of a dataset on a device, from which batches are taken by index.

    Args:
        graphs: The graphs; edge features are not read, repeated edges count once.
        device: Where they lie.
        dtype: Of the numbers of a batch.
        multiple: The size of a batch is rounded up to a multiple of this.
    """

    def __init__(
        self,
        graphs: Sequence[Data],
        device: torch.device | str,
        dtype: torch.dtype = torch.float32,
        multiple: int = 1,
    ) -> None:
        self.dtype, self.multiple = dtype, multiple
        self.size = torch.tensor([*(int(graph.num_nodes or 0) for graph in graphs), 0])  # the last is no graph: id -1
        most = self._rounded(int(self.size.max()))
        channels = graphs[0]["x"].size(1)
        x = torch.zeros(len(graphs) + 1, most, channels, dtype=torch.bool)
        adjacency = torch.zeros(len(graphs) + 1, most, most, dtype=torch.bool)  # a byte per pair: 428 MB for PROTEINS
        for i, graph in enumerate(graphs):
            x[i, : graph["x"].size(0)] = graph["x"] > 0
            adjacency[i, graph["edge_index"][0], graph["edge_index"][1]] = True
        self.x, self.adjacency, self._size = x.to(device), adjacency.to(device), self.size.to(device)

    def batch(self, ids: Tensor) -> DenseBatch:
        """The graphs of these ids `[copies, graphs]`, on the CPU; -1 for none."""
        n = self._rounded(int(self.size[ids].max()))
        ids = ids.to(self.x.device, non_blocking=True)
        return DenseBatch(
            self.x[:, :n][ids].to(self.dtype), self.adjacency[:, :n, :n][ids].to(self.dtype), self._size[ids]
        )

    def _rounded(self, nodes: int) -> int:
        return -(-max(nodes, 1) // self.multiple) * self.multiple


def labeled_adjacency(batch: DenseBatch) -> Tensor:
    r"""The input of PPGN and IGN `[copies, 1 + labels, graphs, nodes, nodes]`, as their released code has it.

    With :math:`S = D^{-1/2} A D^{-1/2}`, channel 0 is S, and channel l + 1 is S plus the diagonal of label l.
    """
    degree = batch.adjacency.sum(-1)
    scale = torch.where(degree > 0, degree.clamp(min=1).rsqrt(), 0)
    shared = scale.unsqueeze(-1) * batch.adjacency * scale.unsqueeze(-2)  # [copies, graphs, nodes, nodes]
    labels = batch.x.movedim(3, 1).diag_embed()  # [copies, labels, graphs, nodes, nodes]
    return torch.cat([torch.zeros_like(labels[:, :1]), labels], dim=1) + shared.unsqueeze(1)


def max_pool(x: Tensor, batch: DenseBatch) -> Tensor:
    """The largest entry on the diagonal and off it, `[copies, channels, graphs, nodes, nodes]` to `[copies, graphs, 2
    channels]`. A graph of one node has nothing off the diagonal: 0."""
    diagonal = x.diagonal(dim1=-2, dim2=-1).masked_fill(~batch.real.unsqueeze(1), -torch.inf).amax(-1)
    off = batch.real_pairs & ~torch.eye(x.size(-1), dtype=torch.bool, device=x.device)
    rest = x.masked_fill(~off, -torch.inf).flatten(-2).amax(-1)
    pooled = torch.cat([diagonal, rest], dim=1)
    return pooled.masked_fill(pooled.isinf(), 0).transpose(1, 2)
