"""Pair queries: the identity graph beside one colored copy of the graph per source."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch

from benchmarks.data import tu_graphs
from benchmarks.measure import Figure, at_least, ratio, take_turns
from idgnn import IDGNN, identity_graph
from idgnn.identity.adjacency import Adjacency, contains, incoming
from idgnn.identity.identity_graph import IdentityGraph, UnreachedColorWarning

CLASSES, GRAPHS, PAIRS, LAYERS = 5, 8, 1000, 5


def run(folder: Path) -> list[Figure]:
    """Training steps of one model on 8 PROTEINS graphs with 1000 random pairs each, K = 5."""
    batch, label, ours, copies = graphs(folder)
    model = IDGNN(batch.num_features, 256, CLASSES, LAYERS, "gcn")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(graph: IdentityGraph, engine: str) -> None:
        optimizer.zero_grad(set_to_none=True)
        out = model(batch.x, batch.edge_index, graph=graph, engine=engine)
        cross_entropy(out, label).backward()
        optimizer.step()

    contenders = {"ours": lambda: step(ours, "trimmed"), "copies": lambda: step(copies, "graph")}
    times = take_turns(contenders, rounds=6)
    return [
        at_least(
            "pair queries, training step, a copy per source : identity graph", ratio(times, "copies", "ours"), 2.5, "x"
        ),
        Figure("pair queries, rows, a copy per source : identity graph", copies.num_nodes / ours.num_nodes, "x"),
    ]


def graphs(folder: Path, number: int = GRAPHS) -> tuple[Batch, Tensor, IdentityGraph, IdentityGraph]:
    """The graphs, a label for each pair, their identity graph, and one copy per source."""
    generator = torch.Generator().manual_seed(0)
    every = tu_graphs(folder, "PROTEINS")
    batch = Batch.from_data_list([every[i] for i in torch.randperm(len(every), generator=generator)[:number].tolist()])
    ends = [batch.ptr[i : i + 2].tolist() for i in range(number)]
    pairs = torch.cat([torch.randint(low, high, (2, PAIRS), generator=generator) for low, high in ends], dim=1)
    label = torch.randint(CLASSES, (pairs.size(1),), generator=generator)
    with warnings.catch_warnings(action="ignore", category=UnreachedColorWarning):
        ours = identity_graph(batch, LAYERS, pairs)
    return batch, label, ours, one_copy_per_source(batch, pairs)


def one_copy_per_source(batch: Batch, pairs: Tensor) -> IdentityGraph:
    """What one would do without the identity graph: for every colored node a copy of its whole graph."""
    size = batch.num_nodes
    into = incoming(batch.edge_index, size)
    color = torch.unique(pairs[1])
    every = torch.arange(size)
    owner, node = Adjacency(batch.ptr, every, every).expand(batch.batch[color])
    key = color[owner] * size + node
    target, position = into.expand(node)
    source, there = contains(key, color[owner][target] * size + into.neighbor[position])
    source, target, edge = source[there], target[there], into.edge[position[there]]
    return IdentityGraph(
        node=node,
        colored=node == color[owner],
        edge_index=torch.stack([source, target]),
        edge=edge,
        arrival=torch.zeros_like(node),
        plain_row=first_of_each(node, size),
        plain_edge=first_of_each(edge, batch.num_edges),
        query_row=torch.searchsorted(key, pairs[1] * size + pairs[0]),
        num_layers=LAYERS,
        num_nodes=node.numel(),
    )


def first_of_each(values: Tensor, size: int) -> Tensor:
    """Where each of the numbers below `size` stands first among `values`."""
    place = torch.full((size,), values.numel())
    return place.scatter_reduce(0, values, torch.arange(values.numel()), "amin")
