"""How many pairs of graphs untrained networks leave undistinguished: all connected graphs with 8 nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.nn import global_add_pool

from idgnn.choices import Identity
from idgnn.experiments.copy_sum import CopySum
from idgnn.graphs.load import load
from idgnn.models.idgnn import IDGNN

TOLERANCE = 1e-11
"""Of a network in float64, relative to the largest number of a column: sums in another order differ by about 1e-15."""
_WIDTH, _NETWORKS = 32, 8  # a pair counts as distinguished if one of the networks gives it different sums


def measure_graph8c(arguments: Mapping[str, int | str], seed: int, device: str) -> dict[str, Any]:
    """The pairs of graphs to which all of some networks with random weights give the same sum of node embeddings.

    BatchNorm takes its statistics over all graphs: with its initial ones, untrained networks leave many more pairs than
    exact refinement does (2,008 in place of 501 by one plain network with 3 layers; refinement leaves 478).

    Args:
        arguments: `dataset`; `identity`, as of an :class:`idgnn.IDGNN`, `"copy"` for ID-GNN-Full that sums over the
            copy of each node, or `"two"` for two colors, with neighbors as second nodes; `layers`; `graphs`, how many
            of the first graphs, all by default.
        seed: Of the weights.
        device: Where the networks run.
    """
    graphs = load(str(arguments["dataset"])).graphs[: int(arguments.get("graphs", 0)) or None]
    batch: Any = Batch.from_data_list(list(graphs))
    batch = batch.to(device)
    same, by_network = None, []
    for number in range(_NETWORKS):
        network = _network(str(arguments["identity"]), int(arguments["layers"]), _NETWORKS * seed + number)
        with torch.no_grad():
            h = network.double().to(device)(batch.x.double(), batch.edge_index)
        sums = global_add_pool(h, batch.batch, batch.num_graphs).cpu()
        same = equal_pairs(sums) if same is None else same[:, _equal(sums, same)]
        by_network.append(same.size(1))
        if not same.size(1):
            break
    return {"pairs": by_network[-1], "by_network": by_network, "graphs": len(graphs), "tolerance": TOLERANCE}


def equal_pairs(rows: Tensor) -> Tensor:
    """The pairs `[2, pairs]` of rows `[rows, channels]` that are equal within :data:`TOLERANCE`.

    Equal rows have equal sums, so only rows whose sums are close are compared: after sorting, those at a distance of 1,
    2, ... places, until none are close.
    """
    total = _scaled(rows).sum(1)
    total, order = total.sort()
    found = [order.new_zeros(2, 0)]
    for distance in range(1, total.numel()):
        close = (total[distance:] - total[:-distance] <= TOLERANCE * rows.size(1)).nonzero().flatten()
        if not close.numel():
            break
        pairs = torch.stack([order[close], order[close + distance]])
        found.append(pairs[:, _equal(rows, pairs)])
    return torch.cat(found, dim=1)


def _equal(rows: Tensor, pairs: Tensor) -> Tensor:
    one, other = _scaled(rows)[pairs]
    return ((one - other).abs() <= TOLERANCE).all(dim=1)


def _scaled(rows: Tensor) -> Tensor:
    return rows / rows.abs().amax(0).clamp(min=torch.finfo(rows.dtype).tiny)


def _network(identity: str, layers: int, seed: int) -> IDGNN:
    copy, colors = identity == "copy", 2 if identity == "two" else 1
    kind = cast(Identity, "full" if copy or colors == 2 else identity)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return (CopySum if copy else IDGNN)(
            1, _WIDTH, None, layers, "gin", kind, colors=colors, normalize=False
        ).train()
