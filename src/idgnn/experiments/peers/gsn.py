"""GSN: graph substructure networks (Bouritsas, Frasca, Zafeiriou, Bronstein, 2020).

GIN whose first layer also reads how often each node (GSN-v) or edge (GSN-e) is part of small patterns. Cycles and
cliques have one kind of node and one kind of edge, so a pattern gives one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import networkx as nx
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, one_hot
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from idgnn.experiments.peers.packed import PackedBatch, PackedGraphs, Space
from idgnn.experiments.peers.peer import Peer
from idgnn.experiments.peers.settings import PeerSettings
from idgnn.experiments.peers.stacked import StackedBatchNorm, StackedLinear

LAYERS = 4


def pattern_counts(
    edge_index: Tensor, num_nodes: int, pattern: Literal["cycle", "clique"], most: int
) -> tuple[Tensor, Tensor]:
    """In how many cycles or cliques of 3 to `most` nodes each node and each edge is: `[nodes, most - 2]` and `[edges,
    most - 2]`. Patterns need not be induced; the edges are undirected.

    Example:
        >>> square = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3], [1, 2, 3, 0, 3, 0, 1, 2]])
        >>> pattern_counts(square, 4, "cycle", 5)[0].tolist()
        [[0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]]
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((u, v) for u, v in edge_index.t().tolist() if u != v)
    found = nx.simple_cycles(graph, length_bound=most) if pattern == "cycle" else nx.enumerate_all_cliques(graph)
    nodes = torch.zeros(num_nodes, most - 2, dtype=torch.long)
    pairs = torch.zeros(num_nodes, num_nodes, most - 2, dtype=torch.long)
    for members in found:
        if len(members) > most:
            break  # cliques come by size
        if len(members) < 3:
            continue
        closed = zip(members, members[1:] + members[:1], strict=True)
        for u, v in closed if pattern == "cycle" else combinations(members, 2):
            pairs[u, v, len(members) - 3] += 1
            pairs[v, u, len(members) - 3] += 1
        nodes[members, len(members) - 3] += 1
    return nodes, pairs[edge_index[0], edge_index[1]]


def encode(columns: Sequence[Tensor]) -> list[Tensor]:
    """One-hot codes of the counts of all graphs: a category for each value that a pattern has anywhere.

    Example:
        >>> [each.tolist() for each in encode([torch.tensor([[0], [5]]), torch.tensor([[2]])])]
        [[[1, 0, 0], [0, 0, 1]], [[0, 1, 0]]]
    """
    every = torch.cat(list(columns))
    codes = [one_hot(column.unique(return_inverse=True)[1]) for column in every.unbind(1)]
    return list(torch.cat(codes, dim=1).split([len(each) for each in columns]))


def gsn_spaces(settings: PeerSettings, graphs: Sequence[Data]) -> list[dict[str, Space]]:
    r"""Nodes and edges of each graph. The first layer sums constants, so its sums are made here:

    .. math::
        \text{GSN-v:} \quad [\mathbf{x}_v, \mathbf{c}_v] + \sum_{u \in N(v)} [\mathbf{x}_u, \mathbf{c}_u], \qquad
        \text{GSN-e:} \quad [\mathbf{x}_v, \mathbf{e}_0] + \sum_{u \in N(v)} [\mathbf{x}_u, \mathbf{c}_{uv}]

    with the one-hot counts c and a category of its own, :math:`\mathbf{e}_0`, for the node itself.
    """
    edges = [coalesce(graph["edge_index"], num_nodes=graph.num_nodes) for graph in graphs]
    counts = [
        pattern_counts(edge_index, int(graph.num_nodes or 0), settings.pattern, settings.pattern_size)
        for graph, edge_index in zip(graphs, edges, strict=True)
    ]
    by_edge = settings.network == "gsn-e"
    codes = encode([counted[by_edge] for counted in counts])
    spaces = []
    for graph, edge_index, code in zip(graphs, edges, codes, strict=True):
        (source, target), x = edge_index, graph["x"].float()
        code = code.float()
        if by_edge:
            code = torch.cat([code, code.new_zeros(len(code), 1)], dim=1)
            own = torch.cat([x, x.new_zeros(len(x), code.size(1) - 1), x.new_ones(len(x), 1)], dim=1)
            sent = torch.cat([x[source], code], dim=1)
        else:
            own = torch.cat([x, code], dim=1)
            sent = own[source]
        nodes = Space(len(x), {"x": x, "first": own.index_add(0, target, sent)})
        links = Space(source.numel(), points={"source": ("nodes", source), "target": ("nodes", target)}, states=False)
        spaces.append({"nodes": nodes, "edges": links})
    return spaces


class MLP(nn.Module):
    """Linear, BatchNorm, ReLU, Linear, and BatchNorm and ReLU after it."""

    def __init__(self, copies: int, in_channels: int, width: int) -> None:
        super().__init__()
        self.linears = nn.ModuleList(StackedLinear(copies, size, width) for size in (in_channels, width))
        self.norms = nn.ModuleList(StackedBatchNorm(copies, width) for _ in range(2))

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """`[copies, rows, in_channels]` to `[copies, rows, width]`."""
        for linear, norm in zip(self.linears, self.norms, strict=True):
            x = norm(linear(x), real).relu()
        return x


class GSN(nn.Module):
    r"""Four layers :math:`\mathbf{h}_v' = \textsc{MLP}(\mathbf{h}_v + \sum_u \mathbf{h}_u)`, the first on the sums of
    :func:`gsn_spaces`; the states of every layer, and the features, are pooled and read by a linear layer, and the
    answers are added."""

    def __init__(self, copies: int, in_channels: int, first: int, num_classes: int, settings: PeerSettings) -> None:
        super().__init__()
        width, self.dropout, self.mean = settings.width, settings.dropout, settings.pool == "mean"
        self.layers = nn.ModuleList(MLP(copies, width if i else first, width) for i in range(LAYERS))
        self.heads = nn.ModuleList(
            StackedLinear(copies, width if i else in_channels, num_classes) for i in range(LAYERS + 1)
        )

    def forward(self, batch: PackedBatch) -> Tensor:
        """`[copies, graphs, num_classes]`."""
        nodes, edges = batch["nodes"], batch["edges"].points
        real = nodes.stacked(nodes.real)
        states, h = [nodes.stacked(nodes.values["x"])], nodes.stacked(nodes.values["first"])
        for i, layer in enumerate(self.layers):
            if i:
                flat = h.flatten(0, 1)
                h = nodes.stacked(flat.index_add(0, edges["target"], flat.index_select(0, edges["source"])))
            h = layer(h, real)
            states.append(h)
        answers = [head(batch.pool("nodes", h, self.mean)) for head, h in zip(self.heads, states, strict=True)]
        return torch.stack([dropout(each, self.dropout, self.training) for each in answers]).sum(0)


def build_gsn(settings: PeerSettings, graphs: Sequence[Data], num_classes: int) -> Peer:
    """GSN for a dataset; counting its patterns takes seconds."""
    spaces = gsn_spaces(settings, graphs)
    features, first = (spaces[0]["nodes"].values[name].size(1) for name in ("x", "first"))
    return Peer(
        lambda copies: GSN(copies, features, first, num_classes, settings), lambda device: PackedGraphs(spaces, device)
    )
