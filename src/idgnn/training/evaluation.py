"""The predictions of a network for a whole query set, and BatchNorm's statistics for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from idgnn.identity.checks import check_whole
from idgnn.tasks.query_set import QuerySet
from idgnn.training.processes import SINGLE_PROCESS, Processes, is_out_of_memory

Batch = TypeVar("Batch")
Batch_co = TypeVar("Batch_co", covariant=True)


class BatchSource(Protocol[Batch_co]):
    """A query set that batches of its graphs, or of its queries, are made from."""

    @property
    def part(self) -> QuerySet:
        """The whole query set."""
        ...

    @property
    def num_items(self) -> int:
        """The number of graphs, or of queries."""
        ...

    def each(self, deals: Sequence[Tensor]) -> Iterator[Batch_co]:
        """One batch for each of several tensors of item ids."""
        ...


@dataclass(frozen=True)
class Predictions:
    """Outputs for all queries of a query set, in their order."""

    out: Tensor  # [queries, num_outputs], or [graphs, num_outputs] if level is graph
    target: Tensor | None
    graph: Tensor  # the graph that each query belongs to


@torch.no_grad()
def predict_all(
    model: nn.Module,
    run: Callable[[Batch], Tensor],
    batches: BatchSource[Batch],
    batch_size: int,
    processes: Processes = SINGLE_PROCESS,
) -> Predictions:
    """What `run` computes for each batch, with the model in evaluation mode.

    Batches have at most `batch_size` graphs, or queries, and fewer if memory runs out. Several processes each compute a
    share, and all of them return the whole.
    """
    check_whole(batch_size, "batch_size", "the graphs in a batch")
    was_training = model.training
    part, found = batches.part, []
    own = processes.share(torch.arange(batches.num_items))
    waiting = list(own.split(batch_size)) if own.numel() else []
    model.eval()
    try:
        while waiting:
            try:
                for batch in batches.each(list(waiting)):
                    found.append(run(batch).float())
                    waiting.pop(0)
            except Exception as error:
                if not is_out_of_memory(error) or waiting[0].numel() == 1:
                    raise
                waiting = list(torch.cat(waiting).split(-(-waiting[0].numel() // 2)))
    finally:
        model.train(was_training)
    out = processes.gather(found)
    owner = torch.arange(part.num_graphs) if part.level == "graph" else part.query_owner
    target = None if part.target is None else part.target.to(out.device)
    return Predictions(out, target, owner.to(out.device))


@contextmanager
def reestimate_batchnorm(model: nn.Module) -> Iterator[None]:
    """Replaces BatchNorm's running statistics by the mean over the batches that the model is run on in this block.

    In training, nine tenths of a running average come from earlier steps, which is out of date if weights change fast.
    Weights are not changed.
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    momentum = [norm.momentum for norm in norms]
    training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    try:
        with torch.no_grad():
            yield
    finally:
        for norm, before in zip(norms, momentum, strict=True):
            norm.momentum = before
        model.train(training)
