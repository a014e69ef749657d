"""Our layers beside PyG's own: `python -m benchmarks.against_pyg`, on a GPU with `--device cuda`.

The same network, Linear and ReLU, K = 3 rounds of (layer, BatchNorm, ReLU), and a last linear layer, on 128 ENZYMES
graphs: made of PyG's layers as its users write it, as a plain `IDGNN`, and as ID-GNN-Full, all with the parameters of a
256-wide GCN. Forward and backward; contenders take turns in one process, and a ratio is the median over the rounds. On
a CPU it is one of process times with one thread, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch_geometric.nn import BatchNorm, GATConv, GCNConv, GINConv, SAGEConv

from benchmarks.data import data_folder, picked, tu_graphs
from benchmarks.gpu import BATCH, CLASSES, CONVS, Call, modes
from benchmarks.measure import Figure, at_most, ratio, show, take_turns, write_record
from idgnn import IDGNN, match_budget

LAYERS = 3
# What ID-GNN-Full with colored messages may take, and our plain layers on a GPU, in times of PyG's plain layers.
FULL = {"cpu": {"gcn": 1.6, "sage": 2.5, "gat": 2.3, "gin": 2.2}, "cuda": dict.fromkeys(CONVS, 1.4)}
PLAIN = 1.0
CONTENDERS = {
    "plain IDGNN": {"identity": "none"},
    "ID-GNN-Fast": {"identity": "fast"},
    "ID-GNN-Full, colored messages": {"identity": "full", "color": "message"},
    "ID-GNN-Full": {"identity": "full"},
}


class PyGNetwork(nn.Module):
    """What `IDGNN(identity="none")` computes, made of PyG's layers; biases that BatchNorm cancels are left out here,
    too."""

    def __init__(self, conv: str, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin_in = nn.Linear(in_channels, hidden_channels)
        self.convs = nn.ModuleList(PYG_LAYERS[conv](hidden_channels) for _ in range(LAYERS))
        self.norms = nn.ModuleList(BatchNorm(hidden_channels) for _ in range(LAYERS))
        self.lin_out = nn.Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """`[nodes, in_channels]` to `[nodes, out_channels]`."""
        h = self.lin_in(x).relu()
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = norm(conv(h, edge_index)).relu()
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


def run(folder: Path, device: str = "cpu", convs: tuple[str, ...] = CONVS, rounds: int = 30) -> list[Figure]:
    """All architectures, eager and, on a GPU, replayed as CUDA graphs."""
    graphs, found = tu_graphs(folder, "ENZYMES"), []
    batch = picked(graphs, BATCH).to(device)
    clock = time.process_time if device == "cpu" else time.perf_counter
    for conv in convs:
        calls = contenders(conv, batch, device)
        for mode, wrap in modes(device).items():
            times = take_turns({name: wrap(call) for name, call in calls.items()}, rounds, warm_up=5, clock=clock)
            found += judged(conv, device, mode, times)
    return found


def contenders(conv: str, batch: object, device: str) -> dict[str, Call]:
    """A training step without its optimizer, of each network."""
    x, edge_index = batch.x, batch.edge_index
    label = torch.randint(CLASSES, (x.size(0),), generator=torch.Generator().manual_seed(1)).to(device)
    budget = IDGNN(x.size(1), 256, CLASSES, LAYERS, "gcn", "none")

    def pyg(width: int) -> nn.Module:
        return PyGNetwork(conv, x.size(1), width, CLASSES)

    torch.manual_seed(0)
    network = pyg(match_budget(pyg, budget)).to(device)
    calls = {"PyG": step(network, lambda: network(x, edge_index), label)}
    for name, options in CONTENDERS.items():

        def ours(width: int, options: dict[str, str] = options) -> IDGNN:
            return IDGNN(x.size(1), width, CLASSES, LAYERS, conv, **options)

        model = ours(match_budget(ours, budget)).to(device)
        ready = model.prepare(x, edge_index)
        calls[name] = step(model, lambda model=model, ready=ready: model.run(ready), label)
    return calls


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
    """The time of PyG's network, and what the others take as a multiple of it."""
    place = device.split(":")[0]
    found = [Figure(f"{conv}, {mode}: PyG", 1e3 * median(times["PyG"]), "ms")]
    for name in CONTENDERS:
        title, value = f"{conv}, {mode}, {name} : PyG", ratio(times, name, "PyG")
        limit = None
        if mode == "eager" and name == "ID-GNN-Full, colored messages":
            limit = FULL[place][conv]
        elif mode == "eager" and name == "plain IDGNN" and place == "cuda":
            limit = PLAIN
        found.append(Figure(title, value, "x") if limit is None else at_most(title, value, limit, "x"))
    return found


if __name__ == "__main__":
    main()
