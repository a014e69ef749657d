"""The training loop as a whole: steps and epochs per second of one process and of several side by side, and the share
of time that is spent on cutting batches and not on the network.

`python -m benchmarks.loop --device cuda --processes 1 12 --modes eager recorded compiled` trains the plain GCN and both
identity-aware versions on ENZYMES (node clustering); `--data ogbg-molhiv` on molecules (graph classification). Batches
have 128 graphs and are drawn anew in each epoch. Recorded steps are replayed as CUDA graphs, the default on a GPU, and
compiled ones are recorded too.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from threading import Barrier

import torch
from rich.console import Console
from rich.table import Table
from torch import multiprocessing

from benchmarks.measure import write_record
from idgnn.graphs.load import load
from idgnn.models.predictor import make_predictor
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import make_problem
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import TrainOptions
from idgnn.training.trainer import Trainer

Figures = dict[str, float]
MODES = ("eager", "recorded", "compiled")
WARM_UP = 40  # epochs: by then batches of all sizes were recorded
NAMES = {"none": "plain GNN", "fast": "ID-GNN-Fast", "full": "ID-GNN-Full"}
TASKS = {"ENZYMES": "node-clustering", "ogbg-molhiv": "graph-classification"}


@dataclass(frozen=True)
class Loop:
    """What is trained, and how."""

    data: str
    conv: str
    device: str
    seconds: float
    mode: str
    networks: tuple[str, ...] = tuple(NAMES)
    precision: str = "float32"

    @property
    def recorded(self) -> bool:
        """Whether steps are replayed."""
        return self.mode != "eager"


def main() -> None:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["ENZYMES"], choices=TASKS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, nargs="+", default=[1])
    parser.add_argument("--seconds", type=float, default=10, help="how long each is measured")
    parser.add_argument("--conv", default="gcn")
    parser.add_argument("--networks", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32", "bf16"))
    parser.add_argument("--modes", nargs="+", default=["eager"], choices=MODES)
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    rows = []
    for data, mode, processes in product(options.data, options.modes, options.processes):
        load(data)  # into the cache, before many processes ask for it
        given = options.conv, options.device, options.seconds, mode, tuple(options.networks), options.precision
        loop = Loop(data, *given)
        rows += measured(loop, processes)
    head = ("data", "network", "mode", "processes", "steps/s", "epochs/s", "cutting", "first epoch")
    table = Table(*head, title=options.device)
    for row in rows:
        share = "" if row["outside"] is None else f"{row['outside']:.1%}"
        figures = [f"{row['steps_per_second']:.1f}", f"{row['epochs_per_second']:.2f}", share, f"{row['first']:.1f} s"]
        table.add_row(row["data"], row["network"], row["mode"], str(row["processes"]), *figures)
    Console().print(table)
    write_record(options.output, rows, options.device)


def measured(loop: Loop, processes: int) -> list[dict]:
    """A row for each network."""
    found, rows = side_by_side(loop, processes), []
    for identity in loop.networks:
        name, each = NAMES[identity], [one[identity] for one in found]
        rate = sum(one["steps_per_second"] for one in each)
        rows.append(
            {
                "data": loop.data,
                "network": name,
                "conv": loop.conv,
                "mode": loop.mode if loop.precision == "float32" else f"{loop.mode}, {loop.precision}",
                "processes": processes,
                "steps_per_second": rate,
                "epochs_per_second": rate / each[0]["steps_per_epoch"],
                "outside": None if loop.recorded else sum(one["outside"] for one in each) / len(each),
                "first": max(one["first"] for one in each),
            }
        )
    return rows


def side_by_side(loop: Loop, processes: int) -> list[dict[str, Figures]]:
    """Trains the same networks in several processes, which begin each of them together."""
    if processes == 1:
        alone = SimpleQueue()
        worker(0, Barrier(1), alone, loop)
        return [alone.get()]
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    multiprocessing.spawn(worker, (barrier, results, loop), processes)  # raises what any of them raises
    return [results.get() for _ in range(processes)]


def worker(number: int, barrier, results, loop: Loop) -> None:
    """One process: epochs to warm up, then as many as fit into the time; one network after the other."""
    if loop.device != "cpu":
        torch.set_num_threads(1)
    problem = make_problem(load(loop.data), TaskSettings(name=TASKS[loop.data]))  # type: ignore[arg-type]
    # As in a long run: a look at the validation part every tenth epoch.
    options = TrainOptions(
        epochs=10**6,
        eval_every=10,
        device=loop.device,
        cuda_graphs="auto" if loop.recorded else "off",
        compile=loop.mode == "compiled",
        precision=loop.precision,  # type: ignore[arg-type]
    )
    found = {}
    for identity in loop.networks:
        settings = ModelSettings(loop.conv, identity)  # type: ignore[arg-type]
        model = make_predictor(settings, problem.level, problem.in_channels, problem.objective.num_outputs, None)
        start = time.perf_counter()
        trainer = Trainer(model, problem, options)
        trainer.train_epoch()
        first = now(trainer) - start
        while time.perf_counter() - start < first + loop.seconds and trainer.epoch < WARM_UP:
            trainer.train_epoch()
        trainer.evaluate()
        barrier.wait()
        start, steps, epochs = time.perf_counter(), 0, 0
        while time.perf_counter() - start < loop.seconds:
            steps += trainer.train_epoch().steps
            epochs += 1
        rate = steps / (time.perf_counter() - start)
        barrier.wait()
        # A recorded step cuts its batch itself.
        share = 0.0 if loop.recorded else outside(trainer)
        figures = {"steps_per_second": rate, "steps_per_epoch": steps / epochs, "outside": share, "first": first}
        found[identity] = figures
        if number == 0:  # a long measurement says how far it is
            print(f"{loop.data}, {NAMES[identity]}, {loop.mode}: {rate:.1f} steps/s in this process", flush=True)
    results.put(found)


def outside(trainer: Trainer, rounds: int = 20) -> float:
    """The share of a step that is spent on cutting its batch, and not on forward, backward and optimizer."""
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
