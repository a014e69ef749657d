"""Run by `torchrun`: one of the processes fails in the second epoch."""

import sys
from dataclasses import replace
from pathlib import Path

from idgnn.training.train import train
from idgnn.training.trainer import Trainer
from tests.training.small_problems import SMALL
from tests.training.test_roots import ROOTS, graph_for

if __name__ == "__main__":
    step = Trainer._step

    def fails(trainer, batch):
        if trainer.processes.rank == 1 and trainer.epoch == 1:
            raise RuntimeError("this process has had enough")
        return step(trainer, batch)

    Trainer._step = fails
    graph = graph_for("node-classification")
    train(graph, "node-classification", model=SMALL, training=replace(ROOTS, epochs=1000), folder=Path(sys.argv[1]))
