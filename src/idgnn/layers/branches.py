"""Independent work as parallel branches of a recorded CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch


def is_recorded(device: torch.device) -> bool:
    """Whether what is launched on the device now becomes part of a CUDA graph."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def side_by_side(device: torch.device, *branches: Sequence[Callable[[], object]]) -> None:
    """Runs all calls, those of a branch one after the other. No branch needs what another one computes.

    In a recorded CUDA graph branches run at the same time: a product of a few thousand rows has work for a part of a
    GPU alone, and the gradient of its weights for even less (182 x 4,200 x 182: 9 blocks for 132 processors). Launched
    one by one, kernels would wait for the CPU all the same.

    Calls write to tensors that were there before: then all memory belongs to the stream that is recorded.
    """
    if not is_recorded(device) or sum(1 for branch in branches if branch) < 2:
        for call in (call for branch in branches for call in branch):
            call()
        return
    first, *others = (branch for branch in branches if branch)
    main = torch.cuda.current_stream(device)
    streams = _streams(main)[: len(others)]
    begin = main.record_event()
    for stream, branch in zip(streams, others, strict=True):
        stream.wait_event(begin)
        with torch.cuda.stream(stream):
            for call in branch:
                call()
    for call in first:
        call()
    for stream in streams:
        main.wait_stream(stream)


@cache
def _streams(main: torch.cuda.Stream) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """For two more branches. Each stream that is recorded has its own: cuBLAS has a workspace for each of them, which
    graphs that run at the same time must not share."""
    return torch.cuda.Stream(main.device), torch.cuda.Stream(main.device)
