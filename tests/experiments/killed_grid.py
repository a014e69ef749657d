"""A script: runs a grid without a pause, and another that is killed again and again with all its processes.

Each attempt is a process group that is killed with signal 9, which no program can catch, at a random moment; the next
one does what is missing. PyTorch is imported and the data are read once, before all of them, to save time. Prints how
many attempts were killed before the grid was complete.
"""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

from idgnn.experiments.execute import execute
from idgnn.experiments.runner import run
from idgnn.experiments.store import Store
from idgnn.experiments.worker import Workers
from tests.experiments.tiny_specs import broken, tiny

KILLS = 20
SPECS = [
    tiny(seed, conv, identity) for seed in range(3) for conv in ("gcn", "sage", "gat") for identity in ("none", "full")
]
SPECS += [broken(seed) for seed in range(2)]


def grid(store: Store) -> None:
    finished = store.read().finished
    run([spec for spec in SPECS if spec.key not in finished], store, Workers(2, start="fork"))


def killed_once(store: Store, rng: random.Random) -> bool:
    """Goes on with the grid, and kills it unless it is complete before."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()
            grid(store)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    enough = lines(store) + rng.randrange(3)  # with 0 it is killed while it starts
    while lines(store) < enough:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, "a grid failed by itself"
            return False
        time.sleep(0.0005)
    time.sleep(rng.random() * 0.1)  # a run takes about as long: anywhere in it
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # it has no group of its own yet
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


def lines(store: Store) -> int:
    return store.path.read_bytes().count(b"\n") if store.path.is_file() else 0


def main(folder: Path, seed: int) -> None:
    torch.set_num_threads(1)
    rng = random.Random(seed)
    for spec in SPECS[:6]:
        execute(spec.job, "cpu")  # reads the data
    grid(Store(folder / "whole"))
    store, killed = Store(folder / "killed"), 0
    for _ in range(KILLS):
        killed += killed_once(store, rng)
        time.sleep(0.01)
    grid(store)
    print(killed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
