"""Link prediction: which edges carry messages, and which are to be predicted."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data


def link_split(data: Data, fraction: float = 0.2, seed: int | torch.Generator = 0, directed: bool = False) -> Data:
    """A copy of the graph in which a fraction of the edges is not there, but asked for.

    `edge_index` keeps the edges that carry messages, with their `edge_attr` and `edge_weight`; `edge_label_index`
    holds the others, the positives, each once in both directions; and `known_edge_index` all edges of the graph, each
    once in both directions, which negatives have to avoid.

    It is pairs of nodes that are drawn, whatever edges join them, so no positive is among the messages in either
    direction: all edges of a drawn pair leave, both directions and repetitions alike. Self-loops always stay. The
    number of pairs is rounded to the nearest, so a graph with one or two edges keeps them at the default fraction.

    Args:
        data: the graph.
        fraction: of the pairs that are joined.
        seed: of the draw, or a generator on the CPU, to draw for one graph after another.
        directed: whether a positive, and a known edge, is one only in the directions that the graph has.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction is {fraction}, expected a number between 0 and 1.")
    if data.edge_index is None or data.num_nodes is None:
        raise ValueError("the graph has no edge_index, expected an integer tensor of shape [2, num_edges].")
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    edge_index, num_nodes = data.edge_index, data.num_nodes
    joins = edge_index[0] != edge_index[1]
    key = _key(edge_index.amin(dim=0), edge_index.amax(dim=0), num_nodes)  # the same for both directions
    pairs = key[joins].unique()
    drawn = torch.randperm(pairs.numel(), generator=generator)[: int(pairs.numel() * fraction + 0.5)]
    held_out = torch.isin(key, pairs[drawn.to(pairs.device)]) & joins

    result = copy.copy(data)
    for name, value in data.to_dict().items():
        if name.startswith("edge_") and name != "edge_index" and _is_per_edge(data, name, value):
            result[name] = value[~held_out]
    result.edge_index = edge_index[:, ~held_out]
    result.edge_label_index = _each_once(edge_index[:, held_out], num_nodes, directed)
    result.known_edge_index = _each_once(edge_index, num_nodes, directed)
    return result


def _is_per_edge(data: Data, name: str, value: object) -> bool:
    labels = ("edge_label", "edge_label_index")  # of another task: of pairs, not of edges
    return isinstance(value, Tensor) and name not in labels and value.dim() > 0 and value.size(0) == data.num_edges


def _each_once(edge_index: Tensor, num_nodes: int, directed: bool) -> Tensor:
    """The different edges, sorted by source; unless directed, both directions of each."""
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    key = _key(edge_index[0], edge_index[1], num_nodes).unique()
    return torch.stack([key // max(num_nodes, 1), key % max(num_nodes, 1)])


def _key(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    return source * num_nodes + target
