"""A training step of ID-GNN-Full beside the plain GNN's: GCN, 128 ENZYMES graphs, K = 3, equal parameter budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from benchmarks.data import picked, tu_graphs
from benchmarks.measure import Figure, at_least, at_most, ratio, take_turns
from idgnn import IDGNN, identity_graph, match_budget

CLASSES = 6


def run(folder: Path) -> list[Figure]:
    """Forward, backward and optimizer step; index arithmetic is done once, before."""
    batch = picked(tu_graphs(folder, "ENZYMES"), 128)
    label = torch.randint(CLASSES, (batch.num_nodes,), generator=torch.Generator().manual_seed(1))
    plain = IDGNN(batch.num_features, 256, CLASSES, 3, "gcn", "none")

    def contender(identity: str, **options: object) -> Callable[[], None]:
        torch.manual_seed(0)
        width = match_budget(lambda w: IDGNN(batch.num_features, w, CLASSES, 3, "gcn", identity), plain)
        model = IDGNN(batch.num_features, width, CLASSES, 3, "gcn", identity)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            cross_entropy(model(batch.x, batch.edge_index, **options), label).backward()
            optimizer.step()

        return step

    graph = identity_graph(batch, 3)
    contenders = {
        "plain": contender("none"),
        "fast": contender("fast"),
        "full": contender("full", graph=graph),
        "untrimmed": contender("full", graph=graph, engine="graph"),
    }
    times = take_turns(contenders, rounds=30, warm_up=3)
    ego = take_turns({"full": contenders["full"], "ego": contender("full", engine="ego")}, rounds=6)
    return [
        at_most("training step, ID-GNN-Full : plain GCN", ratio(times, "full", "plain"), 3.0, "x"),
        Figure("training step, ID-GNN-Fast : plain GCN", ratio(times, "fast", "plain"), "x"),
        at_least("training step, ego networks : ID-GNN-Full", ratio(ego, "ego", "full"), 4.0, "x"),
        Figure("training step, untrimmed identity graph : ID-GNN-Full", ratio(times, "untrimmed", "full"), "x"),
    ]
