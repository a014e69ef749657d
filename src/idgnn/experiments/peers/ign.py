"""IGN: invariant and equivariant graph networks (Maron, Ben-Hamu, Shamir, Lipman, ICLR 2019), of order 2.

Its layers are all linear maps from n x n matrices to n x n matrices that commute with permutations of the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn.experiments.peers.dense import DenseBatch, DenseGraphs, labeled_adjacency, max_pool
from idgnn.experiments.peers.peer import Peer
from idgnn.experiments.peers.settings import PeerSettings
from idgnn.experiments.peers.stacked import StackedLinear

WIDTHS = (16, 32, 256)
HEAD = (512, 256)
_PLACES = {"pair": 2, "diagonal": 5, "row": 3, "column": 3, "all": 2}  # 15 maps, by where their result is put


class EquivariantLinear(nn.Module):
    r"""The 15 basis maps of :math:`R^{n \times n} \to R^{n \times n}`, and two biases, of all entries and the diagonal.

    With :math:`d_i = X_{ii}`, the means :math:`r_i` and :math:`c_i` of row and column i, the mean trace t and the mean
    a of all entries, the result is a linear function

    .. math:: Y_{ij} = f(X_{ij}, X_{ji}) + [i = j]\, g(d_i, t, r_i, c_i, a) + h(d_i, r_i, c_i) + k(d_j, r_j, c_j)
        + l(t, a)
    """

    def __init__(self, copies: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        spread = math.sqrt(2 / (in_channels + out_channels))
        self.maps = nn.ParameterDict(
            {
                place: nn.Parameter(torch.randn(copies, out_channels, number * in_channels) * spread)
                for place, number in _PLACES.items()
            }
        )
        self.bias = nn.Parameter(torch.zeros(copies, out_channels, 1, 1, 1))
        self.diagonal_bias = nn.Parameter(torch.zeros(copies, out_channels, 1, 1))

    def forward(self, x: Tensor, batch: DenseBatch) -> Tensor:
        """`[copies, in_channels, graphs, nodes, nodes]`, 0 in padding, to the same with `out_channels`."""
        nodes = batch.size.clamp(min=1).to(x.dtype)[:, None, :, None]  # [copies, 1, graphs, 1]
        diagonal = x.diagonal(dim1=-2, dim2=-1)  # [copies, channels, graphs, nodes]
        row, column = x.sum(-1) / nodes, x.sum(-2) / nodes
        trace = diagonal.sum(-1, keepdim=True) / nodes  # [copies, channels, graphs, 1]
        every = row.sum(-1, keepdim=True) / nodes

        def put(place: str, *parts: Tensor) -> Tensor:
            joined = torch.cat(parts, dim=1)
            return (self.maps[place] @ joined.flatten(2)).unflatten(2, joined.shape[2:])

        on_diagonal = put("diagonal", diagonal, trace.expand_as(row), row, column, every.expand_as(row))
        found = put("pair", x, x.transpose(-2, -1)) + (on_diagonal + self.diagonal_bias).diag_embed()
        found = found + put("row", diagonal, row, column).unsqueeze(-1)
        found = found + put("column", diagonal, row, column).unsqueeze(-2)
        return (found + put("all", trace, every).unsqueeze(-1) + self.bias) * batch.real_pairs


class IGN(nn.Module):
    """Three equivariant layers, the largest entries on and off the diagonal, and an MLP of three layers."""

    def __init__(self, copies: int, num_labels: int, num_classes: int) -> None:
        super().__init__()
        sizes = [num_labels + 1, *WIDTHS]
        self.layers = nn.ModuleList(EquivariantLinear(copies, sizes[i], sizes[i + 1]) for i in range(len(WIDTHS)))
        sizes = [2 * WIDTHS[-1], *HEAD, num_classes]
        self.head = nn.ModuleList(StackedLinear(copies, sizes[i], sizes[i + 1]).xavier() for i in range(len(HEAD) + 1))

    def forward(self, batch: DenseBatch) -> Tensor:
        """`[copies, graphs, num_classes]`."""
        x = labeled_adjacency(batch)
        for layer in self.layers:
            x = layer(x, batch).relu()
        found = max_pool(x, batch)
        for layer in self.head[:-1]:
            found = layer(found).relu()
        return self.head[-1](found)


def build_ign(settings: PeerSettings, graphs: Sequence[Data], num_classes: int) -> Peer:
    """IGN for a dataset whose node features are one-hot labels; the authors have one set of widths for all."""
    labels = graphs[0]["x"].size(1)
    return Peer(lambda copies: IGN(copies, labels, num_classes), lambda device: DenseGraphs(graphs, device))
