"""Short runs that the cases of faults train, and child processes that do so."""

from __future__ import annotations

import io
import os
import random
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import networkx as nx
import torch
from torch_geometric.data import Data

from benchmarks.fuzz_cases.outcomes import WrongError
from idgnn import ModelSettings, TaskSettings, TrainOptions, train
from idgnn.training.run_folder import RunFolder

KEPT = ("model.safetensors", "model.json", "predictions.csv")


def train_shortly(graph: Data, folder: Path, epochs: int = 6) -> None:
    """Trains a small network in a folder, or goes on with the run that is there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(
            graph,
            TaskSettings(name="node-classification", features="auto"),
            model=ModelSettings(width=4, layers=2),
            training=TrainOptions(epochs=epochs, query_batch_size=16, device="cpu", keep="best"),
            folder=folder,
            resume=RunFolder(folder).exists(),
        )


def labeled(rng: random.Random) -> Data:
    """A graph of 40 nodes in three classes."""
    graph = nx.gnp_random_graph(40, 0.1, seed=rng.randrange(2**31))
    edges = torch.tensor(list(graph.to_directed().edges), dtype=torch.long).view(-1, 2).t()
    return Data(edge_index=edges, num_nodes=40, y=torch.arange(40) % 3)


def finished(folder: Path) -> bool:
    """Whether the run in a folder is done."""
    return RunFolder(folder).exists() and RunFolder(folder).read()["result"] is not None


def check_same_files(ours: Path, theirs: Path) -> None:
    """Raises if the files of two runs are not the same to the byte."""
    for name in KEPT:
        if (ours / name).read_bytes() != (theirs / name).read_bytes():
            raise WrongError(f"{name} differs")


def start_child(work: Callable[[], None]) -> int:
    """Starts a child process; it ends with 0, or with 2 after an error that is a sentence, and otherwise with 1."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            work()
        status = 0
    except (ValueError, OSError):
        status = 2
    except BaseException:
        traceback.print_exc()
    os._exit(status)
