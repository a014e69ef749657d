"""A script: trains in one folder without a pause, and in another while it is killed again and again.

Each run is a child process that is killed with signal 9, which no program can catch, at a random moment after a random
number of epochs; the next child goes on. Prints how many were killed while the run was under way.
"""

import os
import random
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

import torch

from idgnn.training.run_folder import RunFolder
from idgnn.training.train import train
from tests.training.small_problems import QUICK, SMALL, graphs_for, settings_for

EPOCHS = 20


def run(folder: Path, task: str) -> None:
    train(
        graphs_for(task),
        settings_for(task),
        model=SMALL,
        training=replace(QUICK, epochs=EPOCHS, keep="best"),
        folder=folder,
        resume=RunFolder(folder).exists(),
    )


def lines(folder: Path) -> int:
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def child(folder: Path, task: str, rng: random.Random) -> None:
    """Resumes the run, and is killed unless the run ends before."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            run(folder, task)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    more = rng.randrange(5)  # epochs; with 0 of them it is killed while it starts
    enough = lines(folder) + more
    while lines(folder) < enough:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, "a run failed by itself"
            return
        time.sleep(0.0005)
    time.sleep(rng.random() * 0.03)  # an epoch takes about as long: anywhere in it
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def finished(folder: Path) -> bool:
    return RunFolder(folder).exists() and RunFolder(folder).read()["result"] is not None


def main(folder: Path, seed: int, task: str) -> None:
    torch.set_num_threads(1)
    rng = random.Random(seed)
    run(folder / "whole", task)
    killed = 0
    while not finished(folder / "killed"):
        child(folder / "killed", task, rng)
        killed += lines(folder / "killed") > 0 and not finished(folder / "killed")
    print(killed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
