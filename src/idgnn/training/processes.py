"""The device of a run, and the processes that `torchrun` starts.

Every process has all data and a copy of the network. Each computes a share of every batch and of every evaluation;
gradients are averaged, predictions are gathered, and only the first process writes files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from idgnn.identity.cost import TooLargeError

Value = TypeVar("Value")
_SET_BY_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Processes:
    """The number of processes that train a network together, and the rank of this one."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def share(self, items: Tensor) -> Tensor:
        """The items of this process. The shares of all processes, concatenated, are the items."""
        return items if self.size == 1 else items.tensor_split(self.size)[self.rank]

    def gather(self, rows: Sequence[Tensor]) -> Tensor:
        """The rows `[some, channels]` of all processes, concatenated, in every process."""
        if self.size == 1:
            return torch.cat(list(rows))
        own = torch.cat(list(rows)) if rows else torch.empty(0, 0)
        device = own.device if rows or dist.get_backend() == "gloo" else torch.device("cuda")
        sizes = [torch.zeros(2, dtype=torch.long, device=device) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor(own.shape, device=device))
        shapes = torch.stack(sizes).cpu()
        # all_gather takes tensors of one size, so shares are padded to the largest.
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

    def from_first(self, make: Callable[[], Value]) -> Value:
        """What the first process makes, in every process."""
        if self.size == 1:
            return make()
        found: list[Any] = [make() if self.first else None]
        dist.broadcast_object_list(found)
        return found[0]

    def wait(self) -> None:
        """Waits until all processes have called this."""
        if self.size > 1:
            dist.barrier()

    @contextmanager
    def one_before_others(self) -> Iterator[None]:
        """The first process runs the block before the others, which find the files that it has written."""
        if not self.first:
            self.wait()
        try:
            yield
        finally:  # after an error too: the others will meet it themselves
            if self.first:
                self.wait()

    def parallel(self, network: nn.Module) -> nn.Module:
        """The network with gradients averaged over all processes."""
        if self.size == 1:
            return network
        # Each process has BatchNorm statistics of its own until the end of an epoch. PyTorch renamed this argument.
        parameters = signature(DistributedDataParallel).parameters
        name = "forward_sync_buffers" if "forward_sync_buffers" in parameters else "broadcast_buffers"
        no_sync: dict[str, Any] = {name: False}
        return DistributedDataParallel(network, **no_sync)

    def weighted(self, loss: Tensor, weight: float, network: nn.Module) -> Tensor:
        """The loss that a process differentiates: its own, with the weight of its share of the batch."""
        if self.size == 1:
            return loss
        # DistributedDataParallel needs a gradient of every weight in every process, but a share may have no colored
        # message. Weights without a message in any share get a gradient of 0; in a single process they get none.
        return weight * loss + 0 * torch.stack([parameter.sum() for parameter in network.parameters()]).sum()

    def average_statistics(self, network: nn.Module) -> None:
        """Averages the running statistics of BatchNorm over all processes, so that all evaluate the same network."""
        if self.size > 1:
            for values in network.buffers():
                if values.is_floating_point():
                    self.sum(values).div_(self.size)


SINGLE_PROCESS = Processes()


def choose_device(name: str) -> torch.device:
    """The device of that name; `"auto"` is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):  # its message lists twenty kinds of devices
        raise _unusable(name, "there is none of that name; GPUs are called cuda or cuda:1") from None
    if device.type == "mps":
        raise _unusable(name, "it has no 64-bit numbers, which counts and metrics need")
    if device.type == "meta":
        raise _unusable(name, "it holds no numbers")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # PyTorch without CUDA asserts
        raise _unusable(name, str(error).splitlines()[0]) from None
    return device


def _unusable(name: str, reason: str) -> ValueError:
    return ValueError(f"device {name!r} cannot be used here ({reason}). Use cpu, or auto to choose one.")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory is full: that of a GPU, of the CPU, or by our own estimate."""
    if isinstance(error, (torch.OutOfMemoryError, TooLargeError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def device_name(name: str, processes: Processes) -> str:
    """The device of this process if the user asks for `name`: each of several processes has a GPU of its own."""
    if processes.size == 1 or name not in ("auto", "cuda"):
        return name
    if name == "auto" and not torch.cuda.is_available():
        return "cpu"
    rank, num_gpus = int(os.environ.get("LOCAL_RANK", processes.rank)), torch.cuda.device_count()
    if rank >= num_gpus:
        raise ValueError(
            f"process {rank} on this machine has no GPU of its own: there are {num_gpus}. Start at most that many "
            "(torchrun --nproc-per-node), or train on the CPU (device cpu)."
        )
    return f"cuda:{rank}"


def _started_by_torchrun() -> int:
    """The number of processes that torchrun started, including this one; 1 if it did not."""
    return int(os.environ["WORLD_SIZE"]) if all(name in os.environ for name in _SET_BY_TORCHRUN) else 1


def check_single_process(given: str) -> None:
    """Refuses several processes of torchrun where each of them would do the same."""
    size = _started_by_torchrun()
    if size > 1:
        raise ValueError(
            f"{given} is work for one process, but torchrun started {size}, of which each would do all of it. Start it "
            "without torchrun."
        )


def command(processes: int | None = None) -> str:
    """The command that starts this many processes; by default as many as torchrun started here."""
    size = _started_by_torchrun() if processes is None else processes
    return "idgnn" if size == 1 else f"torchrun --nproc-per-node {size} -m idgnn"


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """The processes that torchrun started, or this single process if torchrun did not start it."""
    if dist.is_available() and dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size())
        return
    size = _started_by_torchrun()
    if size == 1:
        yield SINGLE_PROCESS
        return
    processes = Processes(int(os.environ["RANK"]), size)
    chosen = torch.device(device_name(device, processes))
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    yield processes
    # Not after an error: the others may be waiting for this process, and torchrun ends them when it ends.
    dist.destroy_process_group()
