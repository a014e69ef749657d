"""Steps of training that are recorded once and replayed: on a GPU, launching small kernels takes most of a step."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Recorded:
    """A function as a CUDA graph."""

    graph: torch.cuda.CUDAGraph
    result: Tensor
    function: Callable[[], Tensor]  # holds the tensors that the graph reads: they must stay where they are


class Recorder:
    """Records functions as CUDA graphs, each under a key.

    A function runs on tensors that stay where they are, and changes others in place: weights, what the optimiser keeps.
    Replaying it does the same again, whatever the tensors hold by then.

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
            self._anchor = self._record(lambda: torch.zeros(1, device=device))

    def run(self, key: Hashable, make: Callable[[], Callable[[], Tensor]]) -> Tensor:
        """The result of what was recorded under a key, or of the function that `make` makes, recorded from now on."""
        around = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(around)
        with torch.cuda.stream(self.stream):
            if not self._warm:  # what PyTorch sets up when a function runs for the first time must not be recorded
                self._warm = True
                result = make()()
            else:
                if key not in self._recorded:
                    self._recorded[key] = self._record(make())
                result = self._recorded[key].result
                self._recorded[key].graph.replay()
        around.wait_stream(self.stream)
        return result

    def forget(self) -> None:
        """Drops all that was recorded; its memory serves what is recorded next."""
        self._recorded.clear()

    def _record(self, function: Callable[[], Tensor]) -> Recorded:
        graph = torch.cuda.CUDAGraph()
        # They share memory: one runs after the other, and only results outlive a run.
        graph.capture_begin(self._pool, capture_error_mode="thread_local")
        try:
            result = function()
        finally:
            graph.capture_end()
        return Recorded(graph, result, function)
