"""What ID-GNN-Full would cost for a growing number of layers, found out within a time limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import psutil
import torch
from torch_geometric.data import Data

from idgnn.identity.cost import IdentityCost, identity_cost

GROWTH = 32  # of a sample: the costs of all samples together are a fraction of the whole


@dataclass(frozen=True)
class LeftOut:
    """Why the costs of more layers were not found out."""

    why: str


def identity_costs(data: Data, most_layers: int, seconds: float) -> Iterator[IdentityCost | LeftOut]:
    """The costs for 1, 2, ... layers, as long as they fit into memory and counting does not take too long."""
    end = perf_counter() + seconds
    free = psutil.virtual_memory().available
    for num_layers in range(1, most_layers + 1):
        cost = _cost_until(data, num_layers, end)
        if isinstance(cost, int):
            about = f"{float(f'{cost:.1e}'):,.0f}"
            yield LeftOut(f"counting would take longer than {seconds:g} s; a sample suggests about {about} rows")
            return
        yield cost
        if cost.bytes > free:
            yield LeftOut(f"{num_layers} layers would take more memory than the {free / 2**30:.1f} GiB that are free")
            return


def _cost_until(data: Data, num_layers: int, end: float) -> IdentityCost | int:
    """The cost, or an estimate of the rows if counting them would not be finished at `end`.

    The costs of some nodes alone tell how long more of them will take; they grow until they are all nodes.
    """
    num_nodes = data.num_nodes or 0
    order = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))
    size, fixed = 1, None  # the first takes what every graph takes: sorting its edges
    while size < num_nodes:
        before = perf_counter()
        cost = identity_cost(data, num_layers, order[:size])
        now = perf_counter()
        taken = now - before
        fixed = taken if fixed is None else min(fixed, taken)
        larger = min(size * GROWTH, num_nodes)
        if now + fixed + (taken - fixed) * larger / size > end:
            return num_nodes + (cost.rows - num_nodes) * num_nodes // size
        size = larger
    return identity_cost(data, num_layers)
