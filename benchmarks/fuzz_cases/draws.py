"""Graphs and networks that are drawn at random."""

from __future__ import annotations

import random

import torch
from torch_geometric.data import Data

from idgnn import IDGNN

CONVS = ("gcn", "sage", "gat", "gin")


def draw_edges(rng: random.Random, most: int = 14) -> tuple[int, list[tuple[int, int]]]:
    """The number of nodes and edges of an awkward graph: empty, hubs, self-loops, duplicates, one way, in parts."""
    size = rng.randint(1, most)
    kind = rng.choice(("empty", "random", "star", "path", "cycle", "clique", "parts"))
    if kind == "random":
        edges = [(rng.randrange(size), rng.randrange(size)) for _ in range(rng.randrange(3 * size))]
    elif kind == "star":
        edges = [(leaf, 0) for leaf in range(1, size)]
    elif kind == "path":
        edges = [(node, node + 1) for node in range(size - 1)]
    elif kind == "cycle":
        edges = [(node, (node + 1) % size) for node in range(size)]
    elif kind == "clique":
        edges = [(a, b) for a in range(size) for b in range(size) if a != b or rng.random() < 0.2]
    elif kind == "parts":
        edges = [(a, b) for a in range(size) for b in range(size) if (a < size // 2) == (b < size // 2)][: 3 * size]
    else:
        edges = []
    if kind != "clique" and rng.random() < 0.6:
        edges += [(b, a) for a, b in edges]
    rng.shuffle(edges)
    return size, edges


def draw_graph(rng: random.Random, most: int = 14) -> Data:
    """The same with features in float64."""
    size, edges = draw_edges(rng, most)
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous()
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    return Data(x=torch.randn(size, 3, generator=generator, dtype=torch.float64), edge_index=index)


def draw_model(rng: random.Random) -> IDGNN:
    """A network with weights and statistics that are not those of its beginning."""
    conv = rng.choice(CONVS)
    identity = rng.choice(("full", "full", "fast", "none"))
    options = {"aggr": rng.choice(("max", "mean", "sum"))} if conv == "sage" else {}
    model = IDGNN(
        3,
        rng.choice((2, 5, 8)),
        rng.choice((1, 4)),
        rng.randint(1, 5),
        conv,
        identity,
        color=rng.choice(("message", "message+update")),
        cycle_length=rng.randint(1, 5),
        cycle_scale=rng.choice(("log", "walk")),
        **options,
    ).double()
    torch.manual_seed(rng.randrange(2**31))
    with torch.no_grad():
        for value in (*model.parameters(), *(each for each in model.buffers() if each.is_floating_point())):
            value.copy_(torch.rand_like(value) * 0.9 + 0.1)
    return model.eval()
