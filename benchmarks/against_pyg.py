"""Our layers beside PyG's own: `python -m benchmarks.against_pyg`, on a GPU with `--device cuda`.

The same network, Linear and ReLU, K = 3 rounds of (layer, BatchNorm, ReLU), and a last linear layer, on 128 ENZYMES
graphs: made of PyG's layers as its users write it, as a plain `IDGNN`, and as ID-GNN-Full, all with the parameters of a
256-wide GCN. Forward and backward; contenders take turns in one process, and a ratio is the median over the rounds. On
a CPU it is one of process times with one thread, which other work on the machine disturbs least.

PyG's GCN and GAT add self-loops, and GCN computes degrees, in every layer of every step; that cannot be recorded as a
CUDA graph. So there is a second network of PyG's layers, with all of this done before: *PyG, prepared*.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch_geometric.data import Batch
from torch_geometric.nn import BatchNorm, GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from benchmarks.data import data_folder, picked, tu_graphs
from benchmarks.gpu import BATCH, CLASSES, CONVS, Call, modes
from benchmarks.measure import Figure, at_most, ratio, show, take_turns, write_record
from idgnn import IDGNN, match_budget

LAYERS, WIDTH = 3, 256
PLAIN, FULL = "plain IDGNN", "ID-GNN-Full, colored messages"
CONTENDERS = {
    PLAIN: {"identity": "none"},
    "ID-GNN-Fast": {"identity": "fast"},
    FULL: {"identity": "full", "color": "message"},
    "ID-GNN-Full": {"identity": "full"},
}
# What ID-GNN-Full may take, in times of PyG's plain layers; our plain layers may take as long as those on a GPU.
LIMITS = {"cpu": {"gcn": 1.6, "sage": 2.5, "gat": 2.3, "gin": 2.2}, "cuda": dict.fromkeys(CONVS, 1.4)}


class PyGNetwork(nn.Module):
    """What `IDGNN(identity="none")` computes, made of PyG's layers; biases that BatchNorm cancels are left out here,
    too."""

    def __init__(self, layers: Callable[[int], nn.Module], in_channels: int, width: int, out_channels: int) -> None:
        super().__init__()
        self.lin_in = nn.Linear(in_channels, width)
        self.convs = nn.ModuleList(layers(width) for _ in range(LAYERS))
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(LAYERS))
        self.lin_out = nn.Linear(width, out_channels)

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        """`[nodes, in_channels]` to `[nodes, out_channels]`; `edges` are what the layers take besides."""
        h = self.lin_in(x).relu()
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = norm(conv(h, *edges)).relu()
        return self.lin_out(normalize(h))


PYG_LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "gcn": lambda width: GCNConv(width, width, bias=False),
    "sage": lambda width: SAGEConv(width, width, aggr="max", project=True, bias=False),
    "gat": lambda width: GATConv(width, width, bias=False),
    "gin": lambda width: GINConv(
        nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width, bias=False))
    ),
}


def main() -> None:
    """Measures, prints a table and writes the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against_pyg", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--convs", nargs="+", default=CONVS, choices=CONVS)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(1)
    figures = run(data_folder("TUDataset"), options.device, options.convs, options.rounds)
    show(figures, options.device)
    write_record(options.output, figures, options.device)


def run(folder: Path, device: str = "cpu", convs: Sequence[str] = CONVS, rounds: int = 30) -> list[Figure]:
    """All architectures, eager and, on a GPU, replayed as CUDA graphs."""
    batch, found = picked(tu_graphs(folder, "ENZYMES"), BATCH).to(device), []
    clock = time.process_time if device == "cpu" else time.perf_counter
    for conv in convs:
        calls = contenders(conv, batch, device)
        for mode, wrap in modes(device).items():
            taken = {name: wrap(call) for name, call in calls.items() if mode == "eager" or name != "PyG"}
            found += judged(conv, device, mode, take_turns(taken, rounds, warm_up=5, clock=clock))
    return found


def contenders(conv: str, batch: Batch, device: str) -> dict[str, Call]:
    """A training step without its optimizer, of each network."""
    x, edge_index = batch.x, batch.edge_index
    assert x is not None and edge_index is not None
    label = torch.randint(CLASSES, (x.size(0),), generator=torch.Generator().manual_seed(1)).to(device)
    budget = IDGNN(x.size(1), WIDTH, CLASSES, LAYERS, "gcn", "none")
    torch.manual_seed(0)

    def of_pyg(layers: Callable[[int], nn.Module], *edges: Tensor) -> Call:
        def build(width: int) -> PyGNetwork:
            return PyGNetwork(layers, x.size(1), width, CLASSES)

        network = build(match_budget(build, budget, tolerance=0.02)).to(device)
        return step(network, lambda: network(x, *edges), label)

    def ours(options: dict[str, str]) -> Call:
        def build(width: int) -> IDGNN:
            return IDGNN(x.size(1), width, CLASSES, LAYERS, conv, **options)

        model = build(match_budget(build, budget, tolerance=0.02)).to(device)
        ready = model.prepare(x, edge_index)
        return step(model, lambda: model.run(ready), label)

    calls = {"PyG": of_pyg(PYG_LAYERS[conv], edge_index), "PyG, prepared": of_pyg(PYG_LAYERS[conv], edge_index)}
    looped, weight = gcn_norm(edge_index, num_nodes=x.size(0))
    if conv == "gcn":
        calls["PyG, prepared"] = of_pyg(
            lambda width: GCNConv(width, width, bias=False, normalize=False), looped, weight
        )
    elif conv == "gat":
        calls["PyG, prepared"] = of_pyg(lambda width: GATConv(width, width, bias=False, add_self_loops=False), looped)
    return calls | {name: ours(options) for name, options in CONTENDERS.items()}


def step(model: nn.Module, forward: Callable[[], Tensor], label: Tensor) -> Call:
    """Forward and backward."""

    def call() -> Tensor:
        for parameter in model.parameters():
            parameter.grad = None
        loss = cross_entropy(forward(), label)
        loss.backward()
        return loss.detach()

    return call


def judged(conv: str, device: str, mode: str, times: dict[str, list[float]]) -> list[Figure]:
    """The times of PyG's networks, and what ours take as multiples of them."""
    limits = {FULL: LIMITS[device.split(":")[0]][conv]} | ({PLAIN: 1.0} if device != "cpu" else {})
    found = []
    for pyg in ("PyG", "PyG, prepared"):
        if pyg in times:
            found.append(Figure(f"{conv}, {mode}: {pyg}", 1e3 * median(times[pyg]), "ms"))
            for name in CONTENDERS:
                title, value = f"{conv}, {mode}, {name} : {pyg}", ratio(times, name, pyg)
                judged = pyg == "PyG" and name in limits
                found.append(at_most(title, value, limits[name], "x") if judged else Figure(title, value, "x"))
    return found


if __name__ == "__main__":
    main()
