"""What coarser matrix products cost in accuracy: `python -m benchmarks.precision --device cuda`.

Trains ID-GNN-Full on ENZYMES (node clustering), with everything else at its default, for each precision and some seeds;
a seed has the same split, weights and batches in all precisions. What coarser products gain in time is shown by
`python -m benchmarks.loop --precision`.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import multiprocessing

from benchmarks.measure import write_record
from idgnn import TrainOptions, train
from idgnn.graphs.load import load
from idgnn.models.settings import ModelSettings

PRECISIONS = ("float32", "tf32", "bf16")
Job = tuple[str, str, int, int, str]  # layer, precision, seed, epochs, device


def main() -> None:
    """Trains what was asked for, some runs side by side."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--convs", nargs="+", default=["gcn"])
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--processes", type=int, default=9, help="runs side by side")
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    load("ENZYMES")  # into the cache, before many processes ask for it
    seeds = range(options.seeds)
    jobs = [
        (conv, precision, seed, options.epochs, options.device)
        for conv, precision, seed in product(options.convs, options.precisions, seeds)
    ]
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        rows = summarized(jobs, list(pool.map(accuracy, jobs)))
    table = Table("layer", "precision", "held-out accuracy", "deviation", "seeds", title=options.device)
    for row in rows:
        figures = f"{row['accuracy']:.4f}", f"{row['deviation']:.4f}", str(row["seeds"])
        table.add_row(row["conv"], row["precision"], *figures)
    Console().print(table)
    write_record(options.output, rows, options.device, epochs=options.epochs)


def accuracy(job: Job) -> float:
    """On the held-out graphs, after the last epoch."""
    conv, precision, seed, epochs, device = job
    torch.set_num_threads(1)
    # Looked at every tenth epoch: the last one is what counts.
    training = TrainOptions(epochs=epochs, eval_every=10, device=device, precision=precision)  # type: ignore[arg-type]
    run = train("ENZYMES", "node-clustering", model=ModelSettings(conv, "full"), training=training, seed=seed)  # type: ignore[arg-type]
    return run.epochs[-1].metrics["valid"]["accuracy"]


def summarized(jobs: list[Job], found: list[float]) -> list[dict[str, Any]]:
    """A row for each layer and precision: mean and deviation over the seeds."""
    values: dict[tuple[str, str], list[float]] = {}
    for (conv, precision, *_), value in zip(jobs, found, strict=True):
        values.setdefault((conv, precision), []).append(value)
    return [
        {
            "conv": conv,
            "precision": precision,
            "accuracy": mean(each),
            "deviation": stdev(each) if len(each) > 1 else 0.0,
            "seeds": len(each),
        }
        for (conv, precision), each in values.items()
    ]


if __name__ == "__main__":
    main()
