"""PPGN: provably powerful graph networks (Maron, Ben-Hamu, Serviansky, Lipman, NeurIPS 2019).

It keeps a vector for every pair of nodes, and multiplies matrices of them: as strong as the 3-dimensional
Weisfeiler-Leman test, at a cost that grows with the cube of the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn.experiments.peers.dense import DenseBatch, DenseGraphs, labeled_adjacency, max_pool
from idgnn.experiments.peers.peer import Peer
from idgnn.experiments.peers.settings import PeerSettings
from idgnn.experiments.peers.stacked import StackedLinear

BLOCKS = 3
_ALIGNED = 8  # nodes: rows of bfloat16 then begin at multiples of 16 bytes, without which its products are slow


class PairMLP(nn.Module):
    """Two linear layers with ReLU after each, on the vector of every pair."""

    def __init__(self, copies: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first = StackedLinear(copies, in_channels, out_channels).xavier()
        self.second = StackedLinear(copies, out_channels, out_channels).xavier()

    def forward(self, x: Tensor) -> Tensor:
        """`[copies, in_channels, graphs, nodes, nodes]` to the same with `out_channels`."""
        return self.second.along_channels(self.first.along_channels(x).relu()).relu()


class PPGNBlock(nn.Module):
    r"""One block, on tensors of pairs :math:`\mathbf{X} \in R^{n \times n \times d}`:

    .. math::
        \mathbf{Y}_c = m_1(\mathbf{X})_c \cdot m_2(\mathbf{X})_c, \qquad
        \mathbf{X}' = \mathbf{W}\, \textsc{Concat}(\mathbf{X}, \mathbf{Y}) + \mathbf{b}

    with a product of n x n matrices for every channel c, and MLPs :math:`m_1, m_2` of two layers that act on each pair.
    """

    def __init__(self, copies: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.left, self.right = (PairMLP(copies, in_channels, out_channels) for _ in range(2))
        self.skip = StackedLinear(copies, in_channels + out_channels, out_channels).xavier()

    def forward(self, x: Tensor, batch: DenseBatch) -> Tensor:
        """`[copies, in_channels, graphs, nodes, nodes]` to the same with `out_channels`."""
        # Padding must not enter the sum over the middle node; what it leaves in padded rows is never read.
        product = (self.left(x) * batch.real[:, None, :, None, :]) @ self.right(x)
        return self.skip.along_channels(torch.cat([x, product], dim=1))


class PPGN(nn.Module):
    """Three blocks; after each the largest entries are read by a linear layer, and the three answers are added."""

    def __init__(self, copies: int, num_labels: int, width: int, num_classes: int) -> None:
        super().__init__()
        sizes = [num_labels + 1, *[width] * BLOCKS]
        self.blocks = nn.ModuleList(PPGNBlock(copies, sizes[i], sizes[i + 1]) for i in range(BLOCKS))
        self.heads = nn.ModuleList(StackedLinear(copies, 2 * width, num_classes).xavier() for _ in range(BLOCKS))

    def forward(self, batch: DenseBatch) -> Tensor:
        """`[copies, graphs, num_classes]`."""
        x, answers = labeled_adjacency(batch), []
        for block, head in zip(self.blocks, self.heads, strict=True):
            x = block(x, batch)
            answers.append(head(max_pool(x, batch)))
        return torch.stack(answers).sum(0)


def build_ppgn(settings: PeerSettings, graphs: Sequence[Data], num_classes: int) -> Peer:
    """PPGN for a dataset whose node features are one-hot labels."""
    labels = graphs[0]["x"].size(1)
    multiple = _ALIGNED if settings.precision == "bf16" else 1
    return Peer(
        lambda copies: PPGN(copies, labels, settings.width, num_classes),
        lambda device: DenseGraphs(graphs, device, multiple=multiple),
    )
