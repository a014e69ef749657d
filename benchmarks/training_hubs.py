"""What ID-GNN-Full costs on one large graph with hubs, in training and in `embed`, beside the plain GNN.

`python -m benchmarks.training_hubs` measures on Gowalla's training graph and on a synthetic scale-free graph:

- train: one epoch over all nodes as roots, by batches of `idgnn.RootLoader`: forward, backward and Adam step, with the
  preparation of the batches. The first epoch includes making the loader; later ones are the median over `--repeat`.
  Beside it, one full-batch epoch of the plain GNN of the same width, the median of several before and after each
  epoch of ID-GNN-Full.
- embed: `IDGNN.embed` for all nodes, with identity "full" and with identity "none".

Each graph, layer and part runs in a process of its own, whose peak memory is reported. `--batches 20` measures 20
random batches of each epoch and scales the times to all of them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from pathlib import Path
from statistics import median
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from benchmarks.data import gowalla, scale_free
from benchmarks.measure import describe, in_own_process, peak_gib, seconds, write_record
from idgnn import IDGNN, RootLoader

CONVS = ("gcn", "gin", "sage", "gat")
GRAPHS = ("gowalla", "scale-free")
CLASSES, FEATURES = 10, 8
PLAIN_EPOCHS = 3  # of the plain GNN, before and after each epoch of ID-GNN-Full
MOST = {  # targets, as multiples of the plain GNN
    "train": {"gcn": 20, "gin": 20, "sage": 60, "gat": 60},
    "embed": {"gcn": 10, "gin": 10, "sage": 30, "gat": 30},
}


def main() -> None:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_hubs", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("IDGNN_DATA", ".")), help="has relational/")
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, choices=GRAPHS)
    parser.add_argument("--convs", nargs="+", default=CONVS, choices=CONVS, help="sage aggregates by a maximum")
    parser.add_argument("--parts", nargs="+", default=("train", "embed"), choices=MOST)
    parser.add_argument("--batch-size", type=int, default=1024, help="roots in a batch")
    parser.add_argument("--batches", type=int, default=None, help="of an epoch that are measured (default: all)")
    parser.add_argument("--num-workers", type=int, default=0, help="processes that prepare batches")
    parser.add_argument("--repeat", type=int, default=1, help="epochs after the first; calls of embed")
    parser.add_argument("--memory", default="2GiB", help="of embed")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=None, help="a JSON file for the figures")
    options = parser.parse_args()
    if "gowalla" in options.graphs and not (options.data / "relational" / "gowalla").is_dir():
        parser.error("set IDGNN_DATA or --data to the folder with relational/gowalla/, or pass --graphs scale-free.")
    figures = []
    for part, graph, conv in itertools.product(options.parts, options.graphs, options.convs):
        figures.append(in_own_process(measure, options, part, graph, conv))
        print(json.dumps(figures[-1]), flush=True)
    torch.set_num_threads(options.threads)  # which the record states
    for part in options.parts:
        show(part, [each for each in figures if each["part"] == part], describe()["machine"])
    write_record(options.output, figures, options={**vars(options), "data": None, "output": None})


def measure(options: argparse.Namespace, part: str, graph: str, conv: str) -> dict[str, Any]:
    """One part for one graph and one layer."""
    torch.set_num_threads(options.threads)
    data = gowalla(options.data) if graph == "gowalla" else scale_free(100_000, 10.2, 3000)  # hubs of 2,500
    num_nodes = data.num_nodes or 0
    generator = torch.Generator().manual_seed(0)
    data.x = torch.randn(num_nodes, FEATURES, generator=generator)
    data.y = torch.randint(CLASSES, (num_nodes,), generator=generator)
    plain, full = (
        IDGNN(FEATURES, options.width, CLASSES, options.layers, conv, identity) for identity in ("none", "full")
    )
    degree = torch.bincount(data.edge_index[1], minlength=num_nodes)
    found = {
        "part": part,
        "graph": graph,
        "nodes": num_nodes,
        "edge_entries": data.edge_index.size(1),
        "largest_degree": int(degree.max()),
        "conv": conv,
        "peak_gib_before": peak_gib(),
    }
    found |= train(options, data, plain, full) if part == "train" else embed(options, data, plain, full)
    return found | {"peak_gib": peak_gib()}


def train(options: argparse.Namespace, data: Data, plain: IDGNN, full: IDGNN) -> dict[str, Any]:
    """Epochs of the plain GNN, of ID-GNN-Full, and of the plain GNN again."""
    optimizers = {model: torch.optim.Adam(model.parameters()) for model in (plain, full)}

    def step(model: IDGNN, out: Tensor, label: Tensor) -> None:
        optimizers[model].zero_grad()
        cross_entropy(out, label).backward()
        optimizers[model].step()

    def plain_epochs() -> list[float]:
        return [
            seconds(lambda: step(plain, plain(data.x, data.edge_index), data.y))  # full batch
            for _ in range(PLAIN_EPOCHS)
        ]

    plain.train()(data.x, data.edge_index)  # what is loaded or worked out once
    full.train()
    plain_seconds = plain_epochs()
    after_plain, made = peak_gib(), []
    loading = seconds(
        lambda: made.append(
            RootLoader(data, full, batch_size=options.batch_size, shuffle=True, num_workers=options.num_workers)
        )
    )
    loader: RootLoader = made[0]
    measured = min(options.batches or len(loader), len(loader))
    scale = len(loader) / measured
    epochs = []
    for _ in range(1 + options.repeat):
        batches, preparing, training = iter(loader), 0.0, 0.0
        for _ in range(measured):
            drawn: list = []
            preparing += seconds(lambda: drawn.append(next(batches)))  # noqa: B023 (called at once)
            batch = drawn[0]
            training += seconds(lambda: step(full, full.run(batch.ready), data.y[batch.queries]))  # noqa: B023
        epochs.append({"prepare": preparing * scale, "train": training * scale})
        plain_seconds += plain_epochs()
    epochs[0]["prepare"] += loading
    plain_epoch = median(plain_seconds)
    totals = [each["prepare"] + each["train"] for each in epochs]
    later = range(1, len(epochs)) or range(1)
    return {
        "batch_size": options.batch_size,
        "batches": len(loader),
        "batches_measured": measured,
        "plain_seconds": plain_epoch,
        "first_seconds": totals[0],
        "first_prepare_seconds": epochs[0]["prepare"],
        "later_seconds": median(totals[i] for i in later),
        "later_prepare_seconds": median(epochs[i]["prepare"] for i in later),
        "ratio_first": totals[0] / plain_epoch,
        "ratio": median(totals[i] for i in later) / plain_epoch,
        "peak_gib_plain": after_plain,
    }


def embed(options: argparse.Namespace, data: Data, plain: IDGNN, full: IDGNN) -> dict[str, Any]:
    """Embeddings of all nodes by both networks, which take turns."""
    for model in (plain, full):
        model.embed(data, torch.arange(10), memory=options.memory)  # what is loaded at the first call
    times: dict[str, list[float]] = {"plain": [], "full": []}
    for _ in range(options.repeat):
        for name, model, calls in (("plain", plain, PLAIN_EPOCHS), ("full", full, 1), ("plain", plain, PLAIN_EPOCHS)):
            for _ in range(calls):
                times[name].append(seconds(lambda: model.embed(data, memory=options.memory)))  # noqa: B023
    spent = {name: median(each) for name, each in times.items()}
    return {
        "plain_seconds": spent["plain"],
        "full_seconds": spent["full"],
        "ratio": spent["full"] / spent["plain"],
    }


def show(part: str, figures: list[dict[str, Any]], machine: dict[str, Any]) -> None:
    """A table of one part."""
    title = f"{part}, {machine['threads']} threads of {machine['processor']}"
    first = ("first epoch (prepare)", ": plain", "later epoch (prepare)") if part == "train" else ("full",)
    table = Table("graph", "conv", "plain", *first, ": plain", "target", "peak", title=title)
    for each in figures:
        if part == "train":
            cells = [
                f"{each['first_seconds']:.1f} s ({each['first_prepare_seconds']:.1f})",
                f"{each['ratio_first']:.1f}",
                f"{each['later_seconds']:.1f} s ({each['later_prepare_seconds']:.1f})",
            ]
        else:
            cells = [f"{each['full_seconds']:.2f} s"]
        most = MOST[part][each["conv"]]
        color = "green" if each["ratio"] <= most else "red"
        table.add_row(
            each["graph"],
            each["conv"],
            f"{each['plain_seconds']:.3f} s",
            *cells,
            f"[{color}]{each['ratio']:.1f}[/]",
            f"<= {most}",
            f"{each['peak_gib']:.2f} GiB",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
