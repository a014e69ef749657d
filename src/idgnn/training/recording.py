"""Steps of training that are recorded once and replayed: on a GPU, launching small kernels takes most of a step."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

Inputs = TypeVar("Inputs")


@dataclass(frozen=True)
class Recorded:
    """A function, run on its inputs, as a CUDA graph."""

    graph: torch.cuda.CUDAGraph
    result: Tensor
    inputs: Any  # the graph reads their tensors, which must stay where they are


class Recorder:
    """Records what functions do as CUDA graphs, each under a key.

    A function reads its inputs, and changes other tensors in place: weights, what the optimizer keeps. Replaying it
    does the same again, whatever the tensors hold by then.

    Args:
        device: Where the tensors are.
    """

    def __init__(self, device: torch.device | str = "cuda") -> None:
        self.stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()
        self._recorded: dict[Hashable, Recorded] = {}
        self._warm = False
        # Memory belongs to a pool as long as one graph of it lives: this one, so that it serves what is recorded later.
        with torch.cuda.stream(self.stream):
            self._anchor = self._record((1,), lambda shape: torch.zeros(shape, device=device))

    def run(self, key: Hashable, make: Callable[[], Inputs], function: Callable[[Inputs], Tensor]) -> Tensor:
        """The result of what was recorded under a key, or else of the function on the inputs that `make` makes."""
        around = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(around)
        with torch.cuda.stream(self.stream):
            if not self._warm:  # what PyTorch sets up when a function runs for the first time must not be recorded
                self._warm = True
                result = function(make())
            else:
                if key not in self._recorded:
                    self._recorded[key] = self._record(make(), function)
                result = self._recorded[key].result
                self._recorded[key].graph.replay()
        around.wait_stream(self.stream)
        return result

    def forget(self) -> None:
        """Drops all that was recorded; its memory serves what is recorded next."""
        self._recorded.clear()

    def _record(self, inputs: Inputs, function: Callable[[Inputs], Tensor]) -> Recorded:
        graph = torch.cuda.CUDAGraph()
        with _nothing_collected():
            # They share memory: one runs after the other, and only results outlive a run.
            graph.capture_begin(self._pool, capture_error_mode="thread_local")
            try:
                result = function(inputs)
            except BaseException:
                with suppress(RuntimeError):  # it says that there was an error, not which
                    graph.capture_end()
                raise
            graph.capture_end()
        return Recorded(graph, result, inputs)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Keeps the garbage collector still: CUDA graphs among the garbage cannot be destroyed while one is recorded."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
