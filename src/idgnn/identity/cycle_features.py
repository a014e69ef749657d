"""Closed-walk counts on the scale of a network's input, as a function and as a transform: ID-GNN-Fast."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from idgnn.choices import CycleScale
from idgnn.identity.checks import check_count_options, check_edge_index
from idgnn.identity.cycle_counts import ADVICE, check_finite, closed_walks, cycle_counts


def cycle_features(
    edge_index: Tensor,
    num_nodes: int,
    length: int = 10,
    scale: CycleScale = "log",
    *,
    memory: int = 2**30,
    progress: bool = False,
) -> Tensor:
    r"""Closed walks of length k = 1 to `length` at every node, scaled: `[num_nodes, length]` in float64.

    =========== ================================ ==============================================================
    `scale`     column k                         for
    =========== ================================ ==============================================================
    `"counts"`  :math:`(A^k)_{vv}`               exact structure: see :func:`idgnn.cycle_counts`
    `"log"`     :math:`\log(1 + (A^k)_{vv})`     networks: counts grow as the k-th power of the degree
    `"walk"`    :math:`((D^{-1} A)^k)_{vv}`      networks: the probability that a random walk is back at step k
    =========== ================================ ==============================================================

    D holds the out-degrees, duplicates counted; a node without out-edges has probability 0.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> cycle_features(path, num_nodes=3, length=4, scale="walk")
        tensor([[0.0000, 0.5000, 0.0000, 0.5000],
                [0.0000, 1.0000, 0.0000, 1.0000],
                [0.0000, 0.5000, 0.0000, 0.5000]], dtype=torch.float64)
    """
    check_scale(scale)
    if scale == "counts":
        return cycle_counts(edge_index, num_nodes, length, memory=memory, progress=progress)
    check_edge_index(edge_index, num_nodes)
    check_count_options(num_nodes, length, memory)
    walks = closed_walks(edge_index, num_nodes, length, probabilities=scale == "walk", memory=memory, progress=progress)
    check_finite(walks, ADVICE)
    # The logarithm of a rounded count is right to the precision of float64, so there is no warning about 2^53.
    return walks.log1p() if scale == "log" else walks


def check_scale(scale: str) -> None:
    """Refuses a scale that does not exist."""
    if scale not in get_args(CycleScale):
        raise ValueError(f"scale is {scale!r}, expected one of {', '.join(map(repr, get_args(CycleScale)))}.")


class AddCycleCounts(BaseTransform):
    r"""Appends the closed-walk counts of every node to its features: ID-GNN-Fast.

    .. math:: x_v \leftarrow [x_v, s((A^1)_{vv}), \dots, s((A^{length})_{vv})]

    The features keep their dtype; without features the counts become `x`, in float32. Edge weights are ignored. The
    transform of a :class:`~torch_geometric.data.Batch` is that of its graphs, and many times faster than one by one.

    Args:
        length: the longest walk; the paper uses 10.
        scale: `"log"` of one plus the counts, the return probabilities of a random `"walk"`, or raw `"counts"`, which
            float32 holds exactly up to 2^24 only. See :func:`cycle_features`.

    Example:
        >>> triangle = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), x=torch.ones(3, 1))
        >>> AddCycleCounts(length=3, scale="counts")(triangle).x
        tensor([[1., 0., 2., 2.],
                [1., 0., 2., 2.],
                [1., 0., 2., 2.]])
    """

    def __init__(self, length: int = 10, scale: CycleScale = "log") -> None:
        check_count_options(num_nodes=0, length=length, memory=1)
        check_scale(scale)
        self.length = length
        self.scale: CycleScale = scale

    def forward(self, data: Data) -> Data:
        """Changes `data` in place; calling the transform instead leaves its argument as it is."""
        edge_index, num_nodes, x = data.edge_index, data.num_nodes, data.x
        if edge_index is None or num_nodes is None:
            raise ValueError("the graph has no edge_index, expected an integer tensor of shape [2, num_edges].")
        if x is not None and not x.is_floating_point():
            raise ValueError(
                f"x has dtype {x.dtype}, and counts do not fit into it: expected floating-point features. Convert them "
                "with data.x = data.x.float(), or encode categories first, for example with one_hot."
            )
        counts = cycle_features(edge_index, num_nodes, self.length, self.scale)
        if x is None:
            data.x = counts.float()
        else:
            data.x = torch.cat([x.view(-1, 1) if x.dim() == 1 else x, counts.to(x.dtype)], dim=-1)
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(length={self.length}, scale={self.scale!r})"
