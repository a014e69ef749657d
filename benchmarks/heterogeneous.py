"""What driver queries cost on a database of races: rows and messages for each driver, and seconds of a training step.

    PYTHONPATH=src python benchmarks/heterogeneous.py

The tables are drawn at random, as large as those of a racing database up to 2010: results, qualifying and standings
refer to races, drivers and constructors, races to circuits.
"""

from __future__ import annotations

import time
import warnings

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

from idgnn import HeteroConfig, HeteroIDGNN, reachable
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cone import ball
from idgnn.identity.hetero.schedule import typed_schedule
from idgnn.identity.hetero.types import TypedGraph
from idgnn.identity.queries import Queries
from idgnn.identity.schedule_builder import make_schedule

SIZES = {
    "races": 820,
    "drivers": 857,
    "circuits": 77,
    "constructors": 211,
    "results": 20_323,
    "qualifying": 4_082,
    "driver_standings": 28_115,
    "constructor_standings": 10_170,
    "constructor_results": 9_408,
}
REFERS = {
    "races": ["circuits"],
    "results": ["races", "drivers", "constructors"],
    "qualifying": ["races", "drivers", "constructors"],
    "driver_standings": ["races", "drivers"],
    "constructor_standings": ["races", "constructors"],
    "constructor_results": ["races", "constructors"],
}
CHANNELS, BATCH = 64, 256


def racing(seed: int = 0, features: int = 16) -> HeteroData:
    """The database; few drivers and constructors have most of the results, as in a racing database."""
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    for name, size in SIZES.items():
        data[name].x = torch.randn(size, features, generator=generator)
    for table, others in REFERS.items():
        for other in others:
            size = SIZES[other]
            power = 3 if other in ("drivers", "constructors") else 1
            row = (torch.rand(SIZES[table], generator=generator).pow(power) * size).long()
            edges = torch.stack([torch.arange(SIZES[table]), row])
            data[table, f"to_{other}", other].edge_index = edges
            data[other, f"of_{table}", table].edge_index = edges.flip(0).contiguous()
    return data


def cost_per_root(data: HeteroData, root: str, num_layers: int, roots: Tensor) -> dict[str, float]:
    """Rows that are computed and messages that are received in all rounds, on average for one root."""
    typed = TypedGraph.of_data(data)
    graph = IndexedGraph(typed.edge_index, typed.total)
    node = typed.number(root, roots)
    own = make_schedule(graph, Queries(node, node), num_layers, exchange=None, plain_known=True, gradients=False)
    schedule = typed_schedule(own, graph, typed, gradients=False)
    rows = messages = 0.0
    for v in node:  # each round needs the nodes that reach the root in the rounds that are left
        reached, steps = ball(graph.into, v.view(1), num_layers - 1, typed.total)
        degree = graph.into.degree_of(reached)
        for left in range(num_layers):
            rows += int((steps <= left).sum())
            messages += int(degree[steps <= left].sum())
    return {
        "rows": schedule.num_rows / len(roots),
        "messages": schedule.num_messages / len(roots),
        "neighborhood rows": rows / len(roots),
        "neighborhood messages": messages / len(roots),
    }


class Plain(nn.Module):
    """A `HeteroConv` network without identity, of the same width and depth."""

    def __init__(self, data: HeteroData, num_layers: int) -> None:
        super().__init__()
        kinds, width = data.node_types, data[data.node_types[0]].x.size(1)
        self.start = nn.ModuleDict({kind: nn.Linear(width, CHANNELS) for kind in kinds})
        self.convs = nn.ModuleList(
            HeteroConv({kind: SAGEConv(CHANNELS, CHANNELS) for kind in data.edge_types}) for _ in range(num_layers)
        )
        self.norms = nn.ModuleDict({kind: nn.LayerNorm(CHANNELS) for kind in kinds})

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: dict[tuple[str, str, str], Tensor]) -> Tensor:
        """The states of drivers."""
        x = {kind: self.start[kind](x) for kind, x in x_dict.items()}
        for conv in self.convs:
            x = {kind: self.norms[kind](h).relu() for kind, h in conv(x, edge_index_dict).items()}
        return x["drivers"]


def seconds(step, repeats: int = 5) -> float:
    """The median of a few runs, after one that is not counted."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[repeats // 2]


def main() -> None:
    """Prints the figures."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    data, num_layers = racing(), 4
    drivers = torch.randperm(SIZES["drivers"])[:BATCH]
    for name, value in cost_per_root(data, "drivers", num_layers, drivers[:100]).items():
        print(f"{name} per driver, K = {num_layers}: {value:,.0f}")
    plain = Plain(data, num_layers)
    config = HeteroConfig(hidden_channels=CHANNELS, out_channels=1, num_layers=num_layers, root="drivers")
    model = HeteroIDGNN.for_data(data, config)
    index = model.index(data)
    pairs = reachable(data, ("drivers", drivers), "circuits", num_layers)
    base = seconds(lambda: plain(data.x_dict, data.edge_index_dict)[drivers].sum().backward())
    print(f"step of a HeteroConv network without identity: {base:.2f} s")
    for name, queries in ((f"{BATCH} drivers", ("drivers", drivers)), (f"{pairs[0][1].numel()} pairs", pairs)):
        prepare = seconds(lambda queries=queries: index.prepare(queries))
        ready = index.prepare(queries)
        step = seconds(lambda ready=ready: model.run(ready).sum().backward())
        print(f"ID-GNN-Full, {name}: {step:.2f} s and {prepare:.2f} s of preparation")


if __name__ == "__main__":
    main()
