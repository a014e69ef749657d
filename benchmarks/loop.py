"""The training loop as a whole: steps per second of one process and of several side by side, and the time outside.

`python -m benchmarks.loop --device cuda --processes 1 4 12` trains on ENZYMES (node clustering, batches of 128 graphs)
with the plain GCN and both identity-aware versions, and writes the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import multiprocessing

from benchmarks.machine import describe
from idgnn.graphs.load import load
from idgnn.models.predictor import build
from idgnn.models.settings import ModelSettings
from idgnn.tasks.make import make_problem
from idgnn.tasks.settings import TaskSettings
from idgnn.training.files import write_text
from idgnn.training.options import TrainOptions
from idgnn.training.trainer import Trainer

Figures = dict[str, float]
NAMES = {"none": "plain GNN", "fast": "ID-GNN-Fast", "full": "ID-GNN-Full"}


def main() -> None:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, nargs="+", default=[1])
    parser.add_argument("--seconds", type=float, default=10, help="how long each is measured")
    parser.add_argument("--conv", default="gcn")
    parser.add_argument("--record", action="store_true", help="replay steps as CUDA graphs")
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    load("ENZYMES")  # into the cache, before many processes ask for it
    rows = []
    for processes in options.processes:
        found = side_by_side(processes, options.conv, options.device, options.seconds, options.record)
        for identity, name in NAMES.items():
            each = [one[identity] for one in found]
            rate = sum(one["steps_per_second"] for one in each)
            rows.append(
                {
                    "network": name,
                    "conv": options.conv,
                    "recorded": options.record,
                    "processes": processes,
                    "steps_per_second": rate,
                    "epochs_per_second": rate / each[0]["steps_per_epoch"],
                    "outside": sum(one["outside"] for one in each) / len(each),
                }
            )
    table = Table("network", "processes", "steps/s together", "epochs/s", "outside the step", title=options.device)
    for row in rows:
        figures = [f"{row['steps_per_second']:.1f}", f"{row['epochs_per_second']:.2f}", f"{row['outside']:.1%}"]
        table.add_row(row["network"], str(row["processes"]), *figures)
    Console().print(table)
    if options.output is not None:
        record = describe(options.device) | {"figures": rows}
        write_text(options.output, json.dumps(record, indent=2) + "\n")


def side_by_side(processes: int, conv: str, device: str, seconds: float, record: bool) -> list[dict[str, Figures]]:
    """Trains the same networks in several processes, which begin each of them together."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    arguments = (barrier, results, conv, device, seconds, record)
    workers = [context.Process(target=worker, args=arguments) for _ in range(processes)]
    for each in workers:
        each.start()
    found = [results.get(timeout=300) for _ in workers]
    for each in workers:
        each.join()
    return found


def worker(barrier, results, conv: str, device: str, seconds: float, record: bool) -> None:
    """One process: a few epochs to warm up, then as many as fit into the time; one network after the other."""
    if device != "cpu":
        torch.set_num_threads(1)
    problem = make_problem(load("ENZYMES"), TaskSettings(name="node-clustering"))
    # As in a long run: a look at the validation part every tenth epoch.
    options = TrainOptions(epochs=10**6, eval_every=10, device=device, redeal=50 if record else 1, record=record)
    found = {}
    for identity in NAMES:
        settings = ModelSettings(conv, identity)
        model = build(settings, problem.level, problem.in_channels, problem.objective.num_outputs, None)
        trainer = Trainer(model, problem, options)
        for _ in range(5):
            trainer.train_epoch()
        trainer.evaluate()
        barrier.wait()
        start, steps, epochs = time.perf_counter(), 0, 0
        while time.perf_counter() - start < seconds:
            steps += trainer.train_epoch().steps
            epochs += 1
        rate = steps / (time.perf_counter() - start)
        barrier.wait()
        found[identity] = {"steps_per_second": rate, "steps_per_epoch": steps / epochs, "outside": outside(trainer)}
    results.put(found)


def outside(trainer: Trainer, rounds: int = 20) -> float:
    """The share of a step that is spent on cutting its batch, and not on forward, backward and optimiser."""
    batches, cutting, training = trainer._training_batches(), 0.0, 0.0
    for _ in range(rounds):
        graphs = torch.randperm(trainer.train.num_graphs)[: trainer.batch_size]
        start = now(trainer)
        batch = batches.cut(graphs)
        middle = now(trainer)
        trainer._step(batch)
        cutting, training = cutting + middle - start, training + now(trainer) - middle
    return cutting / (cutting + training)


def now(trainer: Trainer) -> float:
    """The time when all that was asked of the device is done."""
    if trainer.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
