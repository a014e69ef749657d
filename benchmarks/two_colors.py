"""What a second color costs: rows, training steps and memory on ENZYMES, and how rows grow with depth and degree.

`python -m benchmarks.two_colors --output benchmarks/results/two_colors.json`, on a GPU with `--device cuda`. 128
ENZYMES graphs, K = 3, neighbors as second nodes, the parameters of a 256-wide GCN. It is compared with a copy of the
3-hop ego network with both colors for each pair (v, w). All is prepared before; contenders take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_undirected

from benchmarks.data import data_folder, tu_graphs
from benchmarks.gpu import memory as on_gpu
from benchmarks.gpu import modes
from benchmarks.measure import Figure, at_least, in_own_process, peak_gib, ratio, show, take_turns, write_record
from idgnn import IDGNN, identity_cost, match_budget
from idgnn.choices import ConvName
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.ego import ego_networks
from idgnn.identity.schedule import Schedule
from idgnn.identity.second_nodes import SecondNodes
from idgnn.identity.two_colors import all_rows

CONVS: tuple[ConvName, ...] = ("gcn", "gin", "sage", "gat")
CONTENDERS: dict[str, dict[str, Any]] = {
    "plain GNN": {"identity": "none"},
    "one color": {"colors": 1},
    "two colors": {"colors": 2},
    "copies": {"colors": 2},
}
CLASSES, LAYERS, MIB = 6, 3, 2**20


def main() -> None:
    """Measures, prints a table and writes the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_colors", description="What a second color costs.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--convs", nargs="+", default=CONVS, choices=CONVS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, help="where the figures are written")
    options = parser.parse_args()
    folder = data_folder("TUDataset")
    peaks = memory(folder, options.device)  # first: a process has had no less than its parent
    batch = enzymes(folder)
    figures = rows(batch)
    for conv in options.convs:
        figures += steps(batch, conv, options.device, options.rounds)
        show(figures, conv)  # as far as it is measured
    figures += peaks
    show(figures, f"{options.device}, {torch.get_num_threads()} threads")
    write_record(options.output, figures, options.device, growth=growth())


def enzymes(folder: Path) -> Any:
    """The batch that all are measured on."""
    graphs = tu_graphs(folder, "ENZYMES")
    picked = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))[:128].tolist()
    return Batch.from_data_list([graphs[i] for i in picked])


def rows(batch: Any) -> list[Figure]:
    """Rows against those of copies: of the identity graph, under both colors alone, and of all rounds of a step."""
    plain = Data(edge_index=batch.edge_index, num_nodes=batch.num_nodes)
    graph = IndexedGraph(batch.edge_index, batch.num_nodes)
    reading = SecondNodes().read(graph, None)
    copied = ego_networks(plain, LAYERS, reading.triples).node.numel()
    cone = all_rows(graph, LAYERS, reading.queries)
    both = int((cone.key // graph.num_nodes >= 2 * graph.num_nodes).sum())
    model = IDGNN(batch.num_features, 8, CLASSES, LAYERS, "gin", colors=2)
    ready = model.prepare(batch.x, batch.edge_index)
    assert isinstance(ready.plan, Schedule)
    computed = sum(round_.num_targets for round_ in ready.plan.rounds)
    total = identity_cost(plain, LAYERS, reading.triples).rows
    one = identity_cost(plain, LAYERS).rows
    return [
        Figure("pairs of a node and a neighbor", reading.owner.numel(), "pairs"),
        Figure("rows of copies of ego networks", copied, "rows"),
        Figure("rows under both colors", both, "rows"),
        Figure("rows of the identity graph", total, "rows"),
        Figure("rows of the identity graph of one color", one, "rows"),
        at_least("copies : rows under both colors", copied / both, 2.5, "x"),
        Figure("copies : rows of the identity graph", copied / total, "x"),
        Figure("copies : rows, computed in all rounds", LAYERS * copied / computed, "x"),
    ]


def contender(batch: Any, conv: ConvName, name: str) -> Callable[[], object]:
    """A training step: forward, backward and optimizer."""
    options, engine = CONTENDERS[name], "ego" if name == "copies" else None
    width = match_budget(
        lambda width: IDGNN(batch.num_features, width, CLASSES, LAYERS, conv, **options),
        IDGNN(batch.num_features, 256, CLASSES, LAYERS, "gcn", "none"),
        tolerance=0.02,
    )
    torch.manual_seed(0)
    model = IDGNN(batch.num_features, width, CLASSES, LAYERS, conv, **options).to(batch.x.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, capturable=batch.x.is_cuda)
    generator = torch.Generator().manual_seed(1)
    label = torch.randint(CLASSES, (batch.num_nodes,), generator=generator).to(batch.x.device)
    ready = model.prepare(batch.x, batch.edge_index, engine=engine)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = cross_entropy(model.run(ready), label)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def steps(batch: Any, conv: ConvName, device: str, rounds: int) -> list[Figure]:
    """Training steps of all contenders, in milliseconds and as ratios; on CUDA also replayed."""
    there, found = batch.to(device), list[Figure]()
    judge = at_least if device == "cpu" else lambda name, value, limit, unit: Figure(name, value, unit)
    for mode, wrap in modes(device).items():
        times = take_turns({name: wrap(contender(there, conv, name)) for name in CONTENDERS}, rounds)
        step = f"{conv}, step" if mode == "eager" else f"{conv}, {mode} step"
        found += [Figure(f"{step}, {name}", 1000 * median(each), "ms") for name, each in times.items()]
        found += [
            Figure(f"{step}, two colors : {other}", ratio(times, "two colors", other), "x")
            for other in ("plain GNN", "one color")
        ]
        found.append(judge(f"{step}, copies : two colors", ratio(times, "copies", "two colors"), 4.0, "x"))
    return found


def memory(folder: Path, device: str) -> list[Figure]:
    """The most memory that steps of GIN take: of a process of its own, or of the GPU."""
    if device == "cpu":
        found = {name: in_own_process(_peak, folder, name) for name in ("", *CONTENDERS)}
        used = {name: found[name] - found[""] for name in CONTENDERS}
    else:
        batch = enzymes(folder).to(device)
        used = {name: on_gpu(contender(batch, "gin", name)) / MIB for name in CONTENDERS}
    return [Figure(f"gin, memory of a step, {name}", mib, "MiB") for name, mib in used.items()]


def _peak(folder: Path, name: str) -> float:
    """MiB that this process has taken at most after two steps, or before any."""
    batch = enzymes(folder)
    if name:
        step = contender(batch, "gin", name)
        step()
        step()
    return peak_gib() * 1024


def growth() -> list[dict[str, Any]]:
    """Rows of random graphs of 2,000 nodes: of one color, of two with neighbors, and of copies for each pair."""
    sweeps = [("K", layers, 4) for layers in range(1, 7)] + [("mean degree", 3, degree) for degree in (2, 4, 8, 16)]
    found = []
    for sweep, layers, degree in sweeps:
        generator = torch.Generator().manual_seed(0)
        ends = torch.randint(2000, (2, 2000 * degree // 2), generator=generator)
        edges = to_undirected(ends[:, ends[0] != ends[1]], num_nodes=2000)
        data = Data(edge_index=edges, num_nodes=2000)
        reading = SecondNodes().read(IndexedGraph(edges, 2000), None)
        triples, own = reading.triples, reading.queries.node
        ego = torch.bincount(_ego_owner(data, layers), minlength=2000)[own].sum()
        rows = {
            "one color": identity_cost(data, layers).rows,
            "two colors": identity_cost(data, layers, triples).rows,
            "copies": int(ego),
        }
        found.append({"sweep": sweep, "K": layers, "degree": degree, "pairs": own.numel(), "rows": rows})
    return found


def _ego_owner(data: Data, num_layers: int) -> torch.Tensor:
    """The node in whose ego network each copied node is."""
    copies = ego_networks(data, num_layers)
    start = torch.zeros_like(copies.node)
    start[1:] = copies.node.diff() <= 0  # nodes are in order within an ego network
    return start.cumsum(0)


if __name__ == "__main__":
    main()
