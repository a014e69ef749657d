"""Closed-walk counts on the scale of a network's input, as a function and as a transform: ID-GNN-Fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform

from idgnn.choices import CycleScale
from idgnn.identity.checks import check_count_options, check_edge_index, check_graph, edges_of
from idgnn.identity.cycle_counts import ADVICE, check_finite, closed_walks, cycle_counts
from idgnn.identity.hetero.types import TypedGraph

_CONSTANT = 1e-6  # a deviation below is rounding
AnyGraph = Data | HeteroData


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

    D holds the out-degrees, duplicates counted; a node without out-edges has probability 0. The scale `"standardized"`
    of :class:`idgnn.IDGNN` and :class:`AddCycleCounts` depends on the training graphs, and is not for one graph.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> cycle_features(path, num_nodes=3, length=4, scale="walk")
        tensor([[0.0000, 0.5000, 0.0000, 0.5000],
                [0.0000, 1.0000, 0.0000, 1.0000],
                [0.0000, 0.5000, 0.0000, 0.5000]], dtype=torch.float64)
    """
    check_scale(scale)
    if scale == "standardized":
        raise ValueError(
            "scale is 'standardized', which takes its statistics from the training graphs. Use 'log' here, and "
            "standardize with AddCycleCounts(scale='standardized').fit(graphs) or IDGNN.fit_cycle_scale(graphs)."
        )
    if scale == "counts":
        return cycle_counts(edge_index, num_nodes, length, memory=memory, progress=progress)
    check_edge_index(edge_index, num_nodes)
    check_count_options(num_nodes, length, memory)
    walks = closed_walks(edge_index, num_nodes, length, probabilities=scale == "walk", memory=memory, progress=progress)
    check_finite(walks, ADVICE)
    # The logarithm of a rounded count is right to the precision of float64, so there is no warning about 2^53.
    return walks.log1p() if scale == "log" else walks


def log_counts(graphs: AnyGraph | Sequence[AnyGraph], length: int) -> Tensor:
    """The counts at all nodes of some graphs, of all types, on a logarithmic scale: `[nodes, length]`."""
    some, edges, first = [graphs] if isinstance(graphs, Data | HeteroData) else list(graphs), [], 0
    for graph in some:
        edge_index, size = _one_graph(graph)
        edges.append(edge_index + first)
        first += size
    return cycle_features(torch.cat(edges, dim=1) if edges else torch.empty(2, 0, dtype=torch.long), first, length)


def _one_graph(graph: AnyGraph) -> tuple[Tensor, int]:
    """The edges and the number of nodes; of several types, of all of them as one graph."""
    if isinstance(graph, HeteroData):
        typed = TypedGraph.of_data(graph)
        return typed.edge_index, typed.total
    num_nodes = check_graph(graph)
    return edges_of(graph), num_nodes


def count_statistics(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each column of counts `[nodes, length]`, 1 in place of the deviation of a constant one."""
    if not counts.size(0):
        raise ValueError("there are no nodes to standardize counts by, expected at least one. Give training graphs.")
    deviation, mean = torch.std_mean(counts.double(), dim=0, correction=0)
    return mean, torch.where(deviation > _CONSTANT, deviation, 1.0)


def check_scale(scale: str) -> None:
    """Refuses a scale that does not exist."""
    if scale not in get_args(CycleScale):
        raise ValueError(f"scale is {scale!r}, expected one of {', '.join(map(repr, get_args(CycleScale)))}.")


def computed_scale(scale: CycleScale) -> CycleScale:
    """The scale of what is computed from a graph alone: logarithms, if they are standardized later."""
    return "log" if scale == "standardized" else scale


class AddCycleCounts(BaseTransform):
    r"""Appends the closed-walk counts of every node to its features: ID-GNN-Fast.

    .. math:: x_v \leftarrow [x_v, s((A^1)_{vv}), \dots, s((A^{length})_{vv})]

    The features keep their dtype; without features the counts become `x`, in float32. Edge weights are ignored. The
    transform of a :class:`~torch_geometric.data.Batch` is that of its graphs, and many times faster than one by one. Of
    a `HeteroData` all node types get counts, over the edges of all types.

    Args:
        length: the longest walk; the paper uses 10.
        scale: `"log"` of one plus the counts, the return probabilities of a random `"walk"`, or raw `"counts"`, which
            float32 holds exactly up to 2^24 only: see :func:`cycle_features`. `"standardized"` are logarithms with mean
            0 and deviation 1 over the graphs that :meth:`fit` is given.

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
        self.mean: Tensor | None = None  # [length] over the training graphs
        self.deviation: Tensor | None = None

    def fit(self, graphs: AnyGraph | Sequence[AnyGraph]) -> Self:
        """Takes the statistics of `"standardized"` over these graphs, the training graphs, and returns itself.

        Example:
            >>> triangle = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), num_nodes=3)
            >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
            >>> add = AddCycleCounts(length=3, scale="standardized").fit([triangle, path])
            >>> add(triangle).x[0], add(path).x[0]  # of triangles: none at the nodes of the path
            (tensor([0.0000, 0.7071, 1.0000]), tensor([ 0.0000, -1.4142, -1.0000]))
        """
        if self.scale != "standardized":
            raise ValueError(f"scale is {self.scale!r}, which needs no statistics: fit is for scale='standardized'.")
        self.mean, self.deviation = count_statistics(log_counts(graphs, self.length))
        return self

    def forward(self, data: AnyGraph) -> AnyGraph:
        """Changes `data` in place; calling the transform instead leaves its argument as it is."""
        if self.scale == "standardized" and self.mean is None:
            raise ValueError(
                "the statistics of scale='standardized' are not known yet. Call fit(graphs) with the training graphs "
                "first, or use scale='log'."
            )
        if isinstance(data, HeteroData):
            typed = TypedGraph.of_data(data)
            parts = self._counts(typed.edge_index, typed.total).split(list(typed.num_nodes))
            found = [_appended(store.get("x"), part) for store, part in zip(data.node_stores, parts, strict=True)]
            for store, x in zip(data.node_stores, found, strict=True):
                store.x = x
            return data
        edge_index, num_nodes = data.edge_index, data.num_nodes
        if edge_index is None or num_nodes is None:
            raise ValueError("the graph has no edge_index, expected an integer tensor of shape [2, num_edges].")
        data.x = _appended(data.x, self._counts(edge_index, num_nodes))
        return data

    def _counts(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        counts = cycle_features(edge_index, num_nodes, self.length, computed_scale(self.scale))
        if self.mean is not None and self.deviation is not None:
            counts = (counts - self.mean.to(counts)) / self.deviation.to(counts)
        return counts

    def __repr__(self) -> str:
        return f"{type(self).__name__}(length={self.length}, scale={self.scale!r})"


def _check_features(x: Tensor | None) -> None:
    if x is not None and not x.is_floating_point():
        raise ValueError(
            f"x has dtype {x.dtype}, and counts do not fit into it: expected floating-point features. Convert them "
            "with data.x = data.x.float(), or encode categories first, for example with one_hot."
        )


def _appended(x: Tensor | None, counts: Tensor) -> Tensor:
    _check_features(x)
    if x is None:
        return counts.float()
    return torch.cat([x.view(-1, 1) if x.dim() == 1 else x, counts.to(x.dtype)], dim=-1)
