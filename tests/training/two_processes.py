"""Runs a function in two processes that train together, without the seconds that starting Python takes."""

import multiprocessing
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from idgnn.training.processes import Processes


def in_two(function: Callable[[Processes], Any], folder: Path) -> list[Any]:
    """What `function` returns in each of them."""
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_child, args=(function, rank, folder)) for rank in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(180)  # they share two cores with other tests
    codes = [child.exitcode for child in children]  # None of one that hangs
    for child in children:
        child.kill()
    error = folder / "error"
    assert codes == [0, 0], error.read_text() if error.exists() else f"exit codes {codes} after three minutes"
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2)]


def _child(function: Callable[[Processes], Any], rank: int, folder: Path) -> None:
    status = 1
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
        torch.save(function(Processes(rank, 2)), folder / f"{rank}.pt")
        dist.destroy_process_group()
        status = 0
    except BaseException:
        (folder / "error").write_text(traceback.format_exc())
    finally:
        os._exit(status)
