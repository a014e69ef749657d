"""The outputs of a network for a whole query set, and BatchNorm's statistics for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from idgnn.identity.checks import check_whole
from idgnn.training.processes import SINGLE_PROCESS, Processes, is_out_of_memory


@dataclass(frozen=True)
class Predictions:
    """Outputs for all queries of a query set, in their order."""

    out: Tensor  # [queries, num_outputs], or [graphs, num_outputs] if level is graph
    target: Tensor
    graph: Tensor  # the graph that each query belongs to


@torch.no_grad()
def predict_all(
    model: nn.Module,
    outputs: Callable[[Sequence[Tensor]], Iterator[Tensor]],
    num_items: int,
    batch_size: int,
    processes: Processes = SINGLE_PROCESS,
) -> Tensor:
    """The outputs `[queries, num_outputs]` for all items, with the model in evaluation mode.

    Items are graphs or queries. `outputs` takes the item ids of several batches, and yields the outputs of each.
    Batches have at most `batch_size` items, and fewer if memory runs out. Several processes each compute a share, and
    all of them return the whole.
    """
    check_whole(batch_size, "batch_size", "the graphs in a batch")
    was_training, found = model.training, []
    own = processes.share(torch.arange(num_items))
    waiting = list(own.split(batch_size)) if own.numel() else []
    model.eval()
    try:
        while waiting:
            try:
                for out in outputs(list(waiting)):
                    found.append(out.float())
                    waiting.pop(0)
            except Exception as error:
                if not is_out_of_memory(error) or waiting[0].numel() == 1:
                    raise
                waiting = list(torch.cat(waiting).split(-(-waiting[0].numel() // 2)))
    finally:
        model.train(was_training)
    return processes.gather(found)


def batch_norms(model: nn.Module) -> list[_BatchNorm]:
    """The parts of a model that keep running statistics."""
    return [part for part in model.modules() if isinstance(part, _BatchNorm) and part.track_running_stats]


@contextmanager
def reestimate_batchnorm(model: nn.Module) -> Iterator[None]:
    """Replaces BatchNorm's running statistics by the mean over the batches that the model is run on in this block.

    In training, nine tenths of a running average come from earlier steps, which is out of date if weights change fast.
    Weights are not changed, and there is no dropout, as in the evaluation that follows.
    """
    norms = batch_norms(model)
    momentum = [norm.momentum for norm in norms]
    training = model.training
    model.eval()
    for norm in norms:
        norm.train()
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    try:
        with torch.no_grad():
            yield
    finally:
        for norm, before in zip(norms, momentum, strict=True):
            norm.momentum = before
        model.train(training)
