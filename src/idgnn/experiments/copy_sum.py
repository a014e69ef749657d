"""The networks of the expressiveness table: sums as aggregation, no scaling to length 1, one of two ways to read.

*Root*: an :class:`idgnn.IDGNN` as it is. *Copy*: what :class:`CopySum` reads beside the root, the sum over all nodes
that the color reaches. Subgraph GNNs that mark the root and pool over its copy of the graph compute the same.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from idgnn.choices import Level
from idgnn.identity.adjacency import IndexedGraph, spread
from idgnn.identity.cone import ball
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.layers.activation import MODULES, activate
from idgnn.layers.aggregation import gather_sum
from idgnn.models.idgnn import IDGNN
from idgnn.models.planner import pooled
from idgnn.models.prepared import Prepared
from idgnn.tasks.problem import Problem
from idgnn.training.run_settings import RunSettings


class CopySum(IDGNN):
    r"""ID-GNN-Full that answers a node v by :math:`\mathbf{h}_{v|v}` and a sum over its copy, side by side:

    .. math:: \Big[\mathbf{h}_{v|v},\ \sum_{u:\, d(v, u) \le K} \mathbf{h}_{u|v}\Big]

    All nodes u that the color of v reaches in K steps are queried, so a node costs as many rows as its K-hop ego
    network has nodes: the radius is not halved as it is where the root alone is read.

    Example:
        >>> model = CopySum(in_channels=1, hidden_channels=8, out_channels=None, num_layers=2, conv="gin")
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> model(torch.ones(3, 1), path).shape
        torch.Size([3, 16])
    """

    @property
    def embedding_channels(self) -> int:
        """Width of what is returned for a node: root and sum."""
        return 2 * super().embedding_channels

    def prepare(  # type: ignore[override]
        self, x: Tensor, edge_index: Tensor, *, queries: Tensor | None = None, **edge: Any
    ) -> Prepared:
        """As :meth:`idgnn.IDGNN.prepare`, for nodes."""
        if queries is not None and queries.dim() != 1:
            raise ValueError(
                f"queries has shape {list(queries.shape)}, expected nodes [num_queries]: the copy of a node is read, "
                "not a pair."
            )
        size = x.size(0)
        root = torch.arange(size, device=edge_index.device) if queries is None else queries.to(edge_index)
        copies, pairs = copies_of(edge_index, size, self.num_layers)
        count = copies.diff()[root]
        owner, taken = spread(copies[root], count)  # the answers that belong to each root, and their pairs
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreachedColorWarning)
            ready = super().prepare(x, edge_index, queries=pairs[:, taken], **edge)
        plan, pool = pooled(ready.plan, owner, root.numel())
        return replace(ready, plan=plan, pool=pool)

    def run(self, ready: Prepared) -> Tensor:
        """Root and sum `[queries, 2 * hidden_channels]`."""
        pool = ready.pool
        assert pool is not None
        h = super().run(replace(ready, pool=None))  # [copies, channels]
        first = pool.ptr[:-1].clamp(max=pool.source.numel() - 1)  # of its copy; padding at the end has none
        root = h.index_select(0, pool.source.index_select(0, first))
        return torch.cat([root, gather_sum(h, pool)], dim=-1)


def copies_of(edge_index: Tensor, num_nodes: int, num_layers: int) -> tuple[Tensor, Tensor]:
    """The nodes that the color of each node reaches: where each copy begins `[num_nodes + 1]`, and the pairs (read,
    color) of all copies `[2, pairs]`, the root first in each."""
    roots = torch.arange(num_nodes, device=edge_index.device)
    if num_nodes == 0:
        return roots.new_zeros(1), roots.new_zeros(2, 0)
    key, steps = ball(IndexedGraph(edge_index, num_nodes).out, roots * (num_nodes + 1), num_layers, num_nodes)
    color, order = torch.sort(2 * (key // num_nodes) + (steps > 0), stable=True)
    color = color // 2
    begin = torch.searchsorted(color, torch.arange(num_nodes + 1, device=key.device))
    return begin, torch.stack([(key % num_nodes).index_select(0, order), color])


class ExpressivePredictor(nn.Module):
    """A network of the table: an encoder, and an MLP on nodes, or on their sum over a graph.

    A linear layer reads the embedding of every node and, beside it, its features with the counts of ID-GNN-Fast: GIN
    adds up a node's own state and those of its neighbors, so that later layers cannot tell its own counts from theirs.

    Args:
        level: Nodes or graphs.
        num_outputs: Numbers per answer.
        encoder: The settings of an :class:`idgnn.IDGNN`.
        copy: Whether the sum over the copy is read, too.
    """

    knows_padding = True
    """Real nodes come first, and are asked about in their order; padding is read after them."""

    def __init__(self, level: Level, num_outputs: int, encoder: dict[str, Any], copy: bool) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"level": level, "num_outputs": num_outputs, "encoder": encoder, "copy": copy}
        self.level: Level = level
        self.encoder = (CopySum if copy else IDGNN)(**encoder)
        width = encoder["hidden_channels"]
        self.lin_read = nn.Linear(self.encoder.embedding_channels + self.encoder.lin_in.in_features, width)
        self.mlp = nn.Sequential(nn.Linear(width, width), MODULES[self.encoder.act](), nn.Linear(width, num_outputs))

    def forward(self, ready: Prepared, graph: Tensor, num_graphs: int) -> Tensor:
        """Answers `[nodes, num_outputs]`, or for graphs `[num_graphs, num_outputs]`; every node is asked about."""
        scale = self.encoder.count_scale
        features = ready.x if scale is None else scale(ready.x)
        h = self.encoder.run(ready)
        if features.size(0) != h.size(0):  # padded batches have room for different numbers of nodes and of queries
            place = torch.arange(h.size(0), device=h.device).clamp_(max=features.size(0) - 1)
            features = features.index_select(0, place)
        h = activate(self.lin_read(torch.cat([h, features], dim=-1)), self.encoder.act)
        return self.mlp(global_add_pool(h, graph, num_graphs) if self.level == "graph" else h)


def build_expressive(settings: RunSettings, problem: Problem, copy: bool) -> ExpressivePredictor:
    """The network of these settings, of the width that they name."""
    model = settings.model
    if problem.level == "pair" or model.width is None or (copy and model.identity != "full"):
        raise ValueError(
            f"the task is about a {problem.level}, the width is {model.width} and identity is {model.identity!r}, "
            "expected nodes or graphs, a given width, and 'full' where the copy is summed."
        )
    config = model.encoder(problem.level, problem.in_channels, model.width, problem.edge_dim)
    encoder = replace(config, normalize=False).as_dict()
    return ExpressivePredictor(problem.level, problem.objective.num_outputs, encoder, copy)
