"""What identity costs on a GPU: `python -m benchmarks.gpu --output benchmarks/results/h200.json`.

Batches of 128 ENZYMES graphs, K = 3, with the parameters of a 256-wide GCN: forward, and forward and backward, launched
kernel by kernel (eager) and replayed as CUDA graphs. Then pairs: 8 PROTEINS graphs with 1000 pairs each, K = 5. All is
prepared before; contenders take turns, and a ratio is the median over the rounds. Such batches are small for a large
GPU, which waits for launches more than for rows; so both are measured with larger ones too (--more).

Products are more than half of a replayed step in float32. So there is `--precision tf32 --modes replayed --more`, with
its own record, `benchmarks/results/h200_tf32.json`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from benchmarks import pairs
from benchmarks.data import data_folder, picked, tu_graphs
from benchmarks.measure import Figure, at_least, at_most, ratio, show, take_turns, write_record
from idgnn import IDGNN, match_budget
from idgnn.models.prepared import Prepared
from idgnn.training.cuda_graphs import CudaGraphCache
from idgnn.training.precision import check_precision, tf32_products

CONVS = ("gcn", "sage", "gat", "gin")
# Name: identity, what is colored, engine.
CONTENDERS = {
    "plain": ("none", "message+update", None),
    "fast": ("fast", "message+update", None),
    "colored messages": ("full", "message", None),
    "full": ("full", "message+update", None),
    "ego": ("full", "message+update", "ego"),
}
BATCH, CLASSES, MIB = 128, 6, 2**20
LIMIT = {"eager": 1.8, "replayed": 2.0}  # of ID-GNN-Full : plain
COLORED_LIMIT = {"gcn": 1.5, "sage": 1.5, "gat": 1.7, "gin": 1.6}  # the same with colored messages alone, replayed
PAIRS_LIMIT = 4.0  # replayed, a copy per source : ID-GNN-Full
MODES = ("eager", "replayed")
Call = Callable[[], object]
Wraps = dict[str, Callable[[Call], Call]]
Judge = Callable[[str, float, float, str], Figure]


def main() -> None:
    """Measures, prints a table and writes the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--convs", nargs="+", default=CONVS, choices=CONVS)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--more", type=int, nargs="*", default=(600, 64), help="graphs in a larger batch: nodes, pairs")
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32"))
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    check_precision(options.precision, torch.device(options.device))
    folder = data_folder("TUDataset")
    figures: list[Figure] = []
    enzymes = tu_graphs(folder, "ENZYMES")
    wraps = {mode: wrap for mode, wrap in modes(options.device).items() if mode in options.modes}
    with tf32_products(options.precision == "tf32"):
        for number in (BATCH, *options.more[:1]):
            for conv in options.convs:
                figures += nodes(enzymes, conv, options.device, wraps, options.rounds, number)
        for number in (pairs.GRAPHS, *options.more[1:]):
            figures += queries(folder, options.device, wraps, options.rounds, number)
    show(figures, f"{options.device}, {options.precision}")
    write_record(options.output, figures, options.device, precision=options.precision)


def nodes(graphs: list[Data], conv: str, device: str, wraps: Wraps, rounds: int, number: int) -> list[Figure]:
    """One architecture, in four versions and by ego networks."""
    batch = picked(graphs, number).to(device)
    label = torch.randint(CLASSES, (batch.num_nodes,), generator=torch.Generator().manual_seed(1)).to(device)
    budget = IDGNN(batch.num_features, 256, CLASSES, 3, "gcn", "none")
    steps: dict[str, tuple[Call, Call]] = {}
    for name, (identity, color, engine) in CONTENDERS.items():

        def build(width: int, identity: str = identity, color: str = color) -> IDGNN:
            return IDGNN(batch.num_features, width, CLASSES, 3, conv, identity, color=color)

        torch.manual_seed(0)
        model = build(match_budget(build, budget)).to(device)
        steps[name] = step(model, model.prepare(batch.x, batch.edge_index, engine=engine), label)
    judged = conv in ("gcn", "gin") and number == BATCH  # those that have targets

    def figure(
        what: str, value: float, judge: Judge | None = None, limit: float = 0.0, judged: bool = judged
    ) -> Figure:
        title = f"{conv}, {number} graphs, {what}"
        return judge(title, value, limit, "x") if judge and judged else Figure(title, value, "x")

    found = []
    for mode, wrap in wraps.items():
        for which, what in enumerate(("forward", "forward + backward")):
            times = take_turns({name: wrap(calls[which]) for name, calls in steps.items()}, rounds, warm_up=5)
            step_, most, least = f"{mode}, {what}", at_most if which else None, at_least if which else None
            milliseconds = 1e3 * sorted(times["plain"])[rounds // 2]
            colored, at = ratio(times, "colored messages", "plain"), number == BATCH and mode == "replayed"
            found += [
                Figure(f"{conv}, {number} graphs, {step_}: plain", milliseconds, "ms"),
                figure(f"{step_}, ID-GNN-Fast : plain", ratio(times, "fast", "plain")),
                figure(f"{step_}, ID-GNN-Full, colored messages : plain", colored, most, COLORED_LIMIT[conv], at),
                figure(f"{step_}, ID-GNN-Full : plain", ratio(times, "full", "plain"), most, LIMIT[mode]),
                figure(f"{step_}, ego networks : ID-GNN-Full", ratio(times, "ego", "full"), least, 3.0),
            ]
    if device.startswith("cuda"):
        peak, step_ = {name: memory(calls[1]) for name, calls in steps.items()}, "memory of a step"
        found += [
            Figure(f"{conv}, {number} graphs, {step_}, ID-GNN-Full", peak["full"] / MIB, "MiB"),
            figure(f"{step_}, ID-GNN-Full : plain", peak["full"] / peak["plain"]),
            figure(f"{step_}, ego networks : ID-GNN-Full", peak["ego"] / peak["full"], at_least, 3.0),
        ]
    return found


def queries(folder: Path, device: str, wraps: Wraps, rounds: int, number: int) -> list[Figure]:
    """Pairs: the identity graph beside one colored copy of the graph per source."""
    batch, label, ours, copies = pairs.graphs(folder, number)
    batch, label = batch.to(device), label.to(device)
    found = []
    for color, kind in (("message", "ID-GNN-Full, colored messages"), ("message+update", "ID-GNN-Full")):
        calls = {}
        for name, graph, engine in (("ours", ours, "trimmed"), ("copies", copies, "graph")):
            torch.manual_seed(0)
            model = IDGNN(batch.num_features, 256, pairs.CLASSES, pairs.LAYERS, "gcn", color=color).to(device)
            ready = model.prepare(batch.x, batch.edge_index, graph=graph.to(device), engine=engine)
            calls[name] = step(model, ready, label)[1]
        for mode, wrap in wraps.items():
            times = take_turns({name: wrap(call) for name, call in calls.items()}, max(rounds // 5, 3), warm_up=3)
            title, value = f"{mode}, forward + backward", ratio(times, "copies", "ours")
            title = f"pairs, {number} graphs, {title}, a copy per source : {kind}"
            judged = number == pairs.GRAPHS and mode == "replayed"
            found.append(at_least(title, value, PAIRS_LIMIT, "x") if judged else Figure(title, value, "x"))
    if device.startswith("cuda"):
        title = f"pairs, {number} graphs, memory of a step, a copy per source : ID-GNN-Full"
        value = memory(calls["copies"]) / memory(calls["ours"])
        found.append(at_least(title, value, 5.0, "x") if number == pairs.GRAPHS else Figure(title, value, "x"))
    return found


def step(model: IDGNN, ready: Prepared, label: torch.Tensor) -> tuple[Call, Call]:
    """Forward, and forward and backward."""

    def forward() -> torch.Tensor:
        with torch.no_grad():
            return model.run(ready)

    def both() -> torch.Tensor:
        for parameter in model.parameters():
            parameter.grad = None
        loss = cross_entropy(model.run(ready), label)
        loss.backward()
        return loss.detach()

    return forward, both


def modes(device: str) -> Wraps:
    """How a call is run and waited for."""
    if not device.startswith("cuda"):
        return {"eager": lambda call: call}

    def waited(call: Call) -> Call:
        def run() -> None:
            call()
            torch.cuda.synchronize()

        return run

    def replayed(call: Call) -> Call:
        recorder = CudaGraphCache()
        return waited(lambda: recorder.run("step", lambda: None, lambda _: call()))  # type: ignore[arg-type, return-value]

    return {"eager": waited, "replayed": replayed}


def memory(call: Call) -> int:
    """Bytes that a call needs at its peak, beside what is there before."""
    call()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


if __name__ == "__main__":
    main()
