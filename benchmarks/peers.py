"""What an epoch of each system of Table 6 costs: the peers with the settings of their authors, and ours.

`python -m benchmarks.peers --device cuda` trains one fold of each for some epochs, and `--page` writes
`docs/peers.md` from the record.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.measure import seconds, write_record
from idgnn.experiments.networks import NETWORKS
from idgnn.experiments.paper_models import PAPER
from idgnn.experiments.peers.run import make_trainer
from idgnn.experiments.peers.settings import DATASETS, PEERS, PeerName, peer_settings
from idgnn.experiments.protocols import text
from idgnn.experiments.tables.table6 import OUR_FOLDS, PUBLISHED_FOLDS
from idgnn.graphs.load import load
from idgnn.models.budget import num_parameters
from idgnn.tasks.problem import make_problem
from idgnn.training.trainer import Trainer
from idgnn.writing import write_text

RECORD = Path("benchmarks/results/peers.json")
PAGE = Path("docs/peers.md")
OURS = ("gcn", "gin", "fast-gcn", "fast-gin", "full-gcn", "full-gin", "full-sage", "full-gat")
_DATASETS = {name: (PUBLISHED_FOLDS | OUR_FOLDS)[name] for name in DATASETS}
_TITLES = {
    "ppgn": "PPGN",
    "ign": "IGN",
    "1-2-3-gnn": "1-2-3-GNN",
    "gsn-v": "GSN-v",
    "gsn-e": "GSN-e",
    "ccn-1d": "CCN 1D",
    "ccn-2d": "CCN 2D",
    **{model.name: f"{model.row.family} {model.row.title}" for model in PAPER},
}


def main() -> None:
    """Measures, shows and writes what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Epochs of the systems of Table 6.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--networks", nargs="+", default=[*PEERS, *OURS], choices=[*PEERS, *OURS])
    parser.add_argument("--rounds", type=int, default=3, help="epochs that are measured, after one to warm up")
    parser.add_argument("--output", type=Path, default=None, help=f"such as {RECORD}")
    parser.add_argument("--page", action="store_true", help=f"measure nothing, and write {PAGE} from {RECORD}")
    options = parser.parse_args()
    if options.page:
        write_text(PAGE, page())
        return
    rows = []
    for data, network in product(options.data, options.networks):
        rows.append(measured(data, network, options.device, options.rounds))
        gc.collect()  # PPGN alone may fill a GPU
        if options.device.startswith("cuda"):
            torch.cuda.empty_cache()
    table = Table("data", "network", "parameters", "seconds per epoch", "GPU memory", title=options.device)
    for row in rows:
        table.add_row(row["data"], row["network"], *_cells(row))
    Console().print(table)
    write_record(options.output, rows, options.device)


def measured(data: str, network: str, device: str, rounds: int) -> dict[str, Any]:
    """The median epoch of a network, and the most memory that tensors took during one of them."""
    torch.set_float32_matmul_precision("high")  # as Table 6 trains the peers
    epoch, parameters = _peer(network, data, device) if network in PEERS else _ours(network, data, device)
    cuda, times, memory = device.startswith("cuda"), list[float](), 0

    def finished() -> None:
        epoch()
        if cuda:
            torch.cuda.synchronize()

    finished()  # to warm up
    for _ in range(rounds):
        if cuda:
            torch.cuda.reset_peak_memory_stats(device)
        times.append(seconds(finished))
        memory = max(memory, torch.cuda.max_memory_allocated(device) if cuda else 0)
    return {"data": data, "network": network, "parameters": parameters, "seconds": median(times), "memory": memory}


def _peer(name: PeerName, data: str, device: str) -> tuple[Callable[[], object], int]:
    """An epoch of a peer on the first fold, its evaluation included, and the number of its parameters."""
    trainer = make_trainer(replace(peer_settings(name, data), folds=1), load(data), device)
    return trainer.train_epoch, num_parameters(trainer.network)


def _ours(name: str, data: str, device: str) -> tuple[Callable[[], object], int]:
    """An epoch of a network of the paper on the first fold, its evaluation included."""
    setup = text("graph-classification", data, 300)
    task = replace(setup.task, split="folds", fold=0)
    job = replace(setup, task=task).job(next(model for model in PAPER if model.name == name), 0)
    model, problem = NETWORKS[job.variant](job.settings, make_problem(load(data), job.settings.task))
    options = replace(job.settings.training, device=device, eval_every=1)
    return Trainer(model, problem, options).train_epoch, num_parameters(model)


def page() -> str:
    """The page of the record."""
    record = json.loads(RECORD.read_text())
    machine = record["machine"]
    lines = [
        "# The cost of the systems of Table 6",
        "",
        f"One epoch of one fold, its evaluation included, on one {machine.get('gpu', machine['processor'])} with",
        f"nothing beside it ({record['date']}). Memory is the most that tensors took. Batches of peers have 4 to 8",
        "graphs for PPGN, IGN and CCN, 20 or 32 for 1-2-3-GNN, 32 for GSN (128 on PTC): [where they come",
        "from](faithfulness.md#the-peers-of-tables-5-and-6). An epoch of GSN is 50 steps on any dataset. Ours have",
        "batches of 128 graphs. So the times say what a training costs, not what a graph costs. Products are in TF32,",
        "those of PPGN in bfloat16. Accuracies are in",
        "[Table 6](results.md#table-6-graph-classification-in-10-folds). `python -m benchmarks.peers --device cuda`",
        "measures the times.",
        "",
    ]
    missing = [title for data, title in _DATASETS.items() if data not in {row["data"] for row in record["figures"]}]
    if missing:
        lines += [f"Not measured yet: {', '.join(missing)}.", ""]
    for data in dict.fromkeys(row["data"] for row in record["figures"]):
        lines += [
            f"## {_DATASETS[data]}",
            "",
            "| network | parameters | seconds per epoch | GPU memory |",
            "| --- | ---: | ---: | ---: |",
        ]
        rows = [row for row in record["figures"] if row["data"] == data]
        lines += [f"| {_TITLES[row['network']]} | {' | '.join(_cells(row))} |" for row in rows] + [""]
    return "\n".join(lines[:-1]) + "\n"


def _cells(row: dict[str, Any]) -> tuple[str, str, str]:
    return (
        f"{row['parameters']:,}",
        f"{row['seconds']:.3f}",
        f"{row['memory'] / 2**20:,.0f} MiB" if row["memory"] else "",
    )


if __name__ == "__main__":
    main()
