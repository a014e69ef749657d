"""Training by several processes, which `torchrun` starts: who is there, who does what, and how results come together.

Every process has all data and an equal copy of the network. Each takes a share of every batch and of all that is
evaluated; gradients are averaged, answers are put together, and the first process alone writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

_SET_BY_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Processes:
    """Those that train one network together, and which of them this one is."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this one writes files and tells the user."""
        return self.rank == 0

    def share(self, items: Tensor) -> Tensor:
        """What this process does of some items. The shares of all, one after the other, are the items."""
        return items if self.size == 1 else items.tensor_split(self.size)[self.rank]

    def gather(self, rows: Sequence[Tensor]) -> Tensor:
        """The rows `[some, channels]` of all processes, one after the other, to each of them."""
        if self.size == 1:
            return torch.cat(list(rows))
        own = torch.cat(list(rows)) if rows else torch.empty(0, 0)
        device = own.device if rows or dist.get_backend() == "gloo" else torch.device("cuda")
        sizes = [torch.zeros(2, dtype=torch.long, device=device) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor(own.shape, device=device))
        shapes = torch.stack(sizes).cpu()
        # Processes hand over tensors of one size, so shares are filled up to the largest.
        longest, width = shapes.amax(0).tolist()
        padded = torch.zeros(longest, width, device=device)
        padded[: own.size(0), : own.size(1)] = own
        found = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(found, padded)
        return torch.cat([each[:size] for each, size in zip(found, shapes[:, 0].tolist(), strict=True)])

    def sum(self, value: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def wait(self) -> None:
        """Until all have come here."""
        if self.size > 1:
            dist.barrier()

    @contextmanager
    def one_before_others(self) -> Iterator[None]:
        """The first process does something, and then the others do, who find the files that it has left."""
        if not self.first:
            self.wait()
        try:
            yield
        finally:  # after an error too: the others come upon it themselves, and say what it is
            if self.first:
                self.wait()

    def parallel(self, network: nn.Module) -> nn.Module:
        """The network with gradients that are averaged over all processes."""
        if self.size == 1:
            return network
        # Statistics of BatchNorm are each process's own until the end of an epoch. PyTorch gave this a new name.
        named = signature(DistributedDataParallel).parameters
        kept_apart: dict[str, Any] = {
            "forward_sync_buffers" if "forward_sync_buffers" in named else "broadcast_buffers": False
        }
        return DistributedDataParallel(network, **kept_apart)

    def weighted(self, loss: Tensor, weight: float, network: nn.Module) -> Tensor:
        """What a process differentiates: its loss, with the weight of its share among those of all."""
        if self.size == 1:
            return loss
        # All weights take part in all processes, also where a share has no colored message for some of them. Weights
        # that no share has a message for get a gradient of 0, where one process alone would leave them without one.
        return weight * loss + 0 * torch.stack([parameter.sum() for parameter in network.parameters()]).sum()

    def average_statistics(self, network: nn.Module) -> None:
        """Gives all processes the mean of the running statistics of BatchNorm, so that all evaluate alike."""
        if self.size > 1:
            for values in network.buffers():
                if values.is_floating_point():
                    self.sum(values).div_(self.size)


ALONE = Processes()


def device_name(name: str, processes: Processes) -> str:
    """The device that this process uses when the user asks for `name`: of several GPUs each process has its own."""
    if processes.size == 1 or name not in ("auto", "cuda"):
        return name
    if name == "auto" and not torch.cuda.is_available():
        return "cpu"
    number, there = int(os.environ.get("LOCAL_RANK", processes.rank)), torch.cuda.device_count()
    if number >= there:
        raise ValueError(
            f"process {number} on this machine has no GPU of its own: there are {there}. Start at most so many "
            "(torchrun --nproc-per-node), or train on the CPU (device cpu)."
        )
    return f"cuda:{number}"


def _started_by_torchrun() -> int:
    """How many processes it started, this one among them; 1 if it did not."""
    return int(os.environ["WORLD_SIZE"]) if all(name in os.environ for name in _SET_BY_TORCHRUN) else 1


def command(processes: int | None = None) -> str:
    """How so many processes are started on the command line; unless said, as many as torchrun started here."""
    size = _started_by_torchrun() if processes is None else processes
    return "idgnn" if size == 1 else f"torchrun --nproc-per-node {size} -m idgnn"


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """The processes that torchrun started, this one among them; alone if it was not torchrun that started it."""
    if dist.is_available() and dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size())
        return
    size = _started_by_torchrun()
    if size == 1:
        yield ALONE
        return
    processes = Processes(int(os.environ["RANK"]), size)
    chosen = torch.device(device_name(device, processes))
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    yield processes
    # Not after an error: the others may wait for this process, and are ended by torchrun when it ends.
    dist.destroy_process_group()
