"""Training steps captured once as CUDA graphs and replayed: on a GPU, launching small kernels takes most of a step."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

Inputs = TypeVar("Inputs")


class NotRecordedWarning(UserWarning):
    """Training on a GPU launches every kernel by itself, because its steps cannot be recorded."""


@dataclass(frozen=True)
class CapturedGraph:
    """A function on given inputs, as a CUDA graph."""

    graph: torch.cuda.CUDAGraph
    result: Tensor
    inputs: Any  # the graph reads the memory of their tensors, so they are kept alive


class CudaGraphCache:
    """Captures functions as CUDA graphs, one per key, and replays them.

    A function reads its inputs and changes other tensors in place: weights, the state of the optimizer. A replay does
    the same with the values that the tensors have by then.

    Args:
        device: The device of the tensors.
    """

    def __init__(self, device: torch.device | str = "cuda") -> None:
        self.stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()
        self._captured: dict[Hashable, CapturedGraph] = {}
        self._warm = set[Hashable]()
        # A memory pool lives as long as one of its graphs: this one keeps it for the graphs that are captured later.
        with torch.cuda.stream(self.stream):
            self._anchor = self._capture((1,), lambda shape: torch.zeros(shape, device=device))

    def run(
        self, key: Hashable, make: Callable[[], Inputs], function: Callable[[Inputs], Tensor], kind: Hashable = None
    ) -> Tensor:
        """Replays the graph of a key. If there is none, captures the function on the inputs that `make` returns.

        Functions of one kind run the same kernels: the first one is run as it is, so that they are compiled.
        """
        current = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            if kind not in self._warm:  # what is compiled or initialized in the first call must not be captured
                self._warm.add(kind)
                result = function(make())
            else:
                if key not in self._captured:
                    self._captured[key] = self._capture(make(), function)
                result = self._captured[key].result
                self._captured[key].graph.replay()
        current.wait_stream(self.stream)
        return result

    def clear(self) -> None:
        """Drops all graphs; their memory is used for the next ones."""
        self._captured.clear()

    def _capture(self, inputs: Inputs, function: Callable[[Inputs], Tensor]) -> CapturedGraph:
        graph = torch.cuda.CUDAGraph()
        with _no_garbage_collection():
            # Graphs share memory: they run one after the other, and only results outlive a run.
            graph.capture_begin(self._pool, capture_error_mode="thread_local")
            try:
                result = function(inputs)
            except BaseException:
                with suppress(RuntimeError):  # it would hide the error of the function
                    graph.capture_end()
                raise
            graph.capture_end()
        return CapturedGraph(graph, result, inputs)


def make_adam_state(optimizer: torch.optim.Adam) -> None:
    """Makes the state of Adam before its first step: made while a step is captured, it would be reset by each replay.

    A weight gets its state in the first step that gives it a gradient, and that need not be the first step of all.
    """
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if not optimizer.state[weight]:
                optimizer.state[weight] = {
                    "step": torch.zeros((), device=weight.device),
                    "exp_avg": torch.zeros_like(weight),
                    "exp_avg_sq": torch.zeros_like(weight),
                }


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Garbage may contain CUDA graphs, which cannot be destroyed while another one is captured."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
