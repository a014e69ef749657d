"""Table 1: how many random regular graphs have different representations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_add_pool

from idgnn.experiments.tables.table1 import LAYERS
from idgnn.graphs.synthetic import random_regular
from idgnn.identity.checks import edges_of
from idgnn.identity.cycle_counts import cycle_counts
from idgnn.models.idgnn import IDGNN

TOLERANCE = 1e-12
"""Of a network in float64, relative to the largest number: sums in another order differ by about 1e-15 of it."""
_AT_ONCE = 10  # graphs: the identity graphs of 100 at once would take gigabytes
_WIDTH = 16


def measure_regular_graphs(arguments: Mapping[str, int | str], seed: int, device: str) -> dict[str, Any]:
    r"""The share of distinct representations among `num_graphs` random graphs, for each number K of layers.

    * `"sum"`: :math:`\sum_v (A^k)_{vv}`, k = 1 to K, which Proposition 2 lets K layers of ID-GNN add up: as published;
    * `"multiset"`: the same counts node by node, in any order;
    * `"network"`: the summed embeddings of an untrained K-layer ID-GNN-Full (GIN), equal if within :data:`TOLERANCE`;
    * `"plain"`: the same for the plain GIN, which distinguishes none of them.
    """
    num_nodes, degree, num_graphs = (int(arguments[name]) for name in ("num_nodes", "degree", "num_graphs"))
    graphs = random_regular(num_graphs, num_nodes, degree, seed)
    edge_index = torch.cat([edges_of(graph) + i * num_nodes for i, graph in enumerate(graphs)], dim=1)
    counts = cycle_counts(edge_index, num_graphs * num_nodes, max(LAYERS)).view(num_graphs, num_nodes, -1)
    found: dict[str, dict[str, float]] = {"sum": {}, "multiset": {}, "network": {}, "plain": {}}
    for layers in LAYERS:
        seen = counts[..., :layers]
        distinct = {
            "sum": torch.unique(seen.sum(1), dim=0).size(0),
            "multiset": len({tuple(sorted(map(tuple, nodes))) for nodes in seen.tolist()}),
            "network": num_distinct(_represent(graphs, layers, "full", seed, device)),
            "plain": num_distinct(_represent(graphs, layers, "none", seed, device)),
        }
        for name, number in distinct.items():
            found[name][str(layers)] = number / num_graphs
    return {**found, "num_graphs": num_graphs, "tolerance": TOLERANCE}


def num_distinct(representations: Tensor) -> int:
    """How many rows differ from all rows before them, up to :data:`TOLERANCE` of the largest number."""
    scaled = representations / representations.abs().max().clamp(min=torch.finfo(representations.dtype).tiny)
    equal = (scaled.unsqueeze(1) - scaled).abs().amax(dim=-1) <= TOLERANCE  # [graphs, graphs]
    return int((~equal.tril(-1).any(dim=1)).sum())


@torch.no_grad()
def _represent(graphs: list[Data], layers: int, identity: Literal["full", "none"], seed: int, device: str) -> Tensor:
    """The summed node embeddings of each graph by an untrained network: `[graphs, channels]`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = IDGNN(1, _WIDTH, _WIDTH, layers, "gin", identity).double().eval().to(device)
    parts = []
    for first in range(0, len(graphs), _AT_ONCE):
        batch: Any = Batch.from_data_list(list(graphs[first : first + _AT_ONCE]))
        batch = batch.to(device)
        x = torch.ones(batch.num_nodes, 1, dtype=torch.double, device=device)
        parts.append(global_add_pool(model(x, batch.edge_index), batch.batch, batch.num_graphs))
    return torch.cat(parts).cpu()
