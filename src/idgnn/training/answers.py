"""What a network says about a whole part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from idgnn.identity.checks import check_whole
from idgnn.tasks.query_set import QuerySet
from idgnn.training.batches import GraphBatch
from idgnn.training.devices import is_out_of_memory
from idgnn.training.processes import ALONE, Processes

Batch = TypeVar("Batch")
Batch_co = TypeVar("Batch_co", covariant=True)


class Dealt(Protocol[Batch_co]):
    """What is asked, dealt into batches of whatever `run` computes with."""

    @property
    def part(self) -> QuerySet:
        """All of it."""
        ...

    @property
    def num_items(self) -> int:
        """How many graphs, or queries, are dealt."""
        ...

    def each(self, deals: Sequence[Tensor]) -> Iterator[Batch_co]:
        """A batch of each of several lots of them."""
        ...


@dataclass(frozen=True)
class Answers:
    """Outputs for all queries of a part, in their order."""

    out: Tensor  # [queries, numbers], or [graphs, numbers] if graphs are asked about
    target: Tensor | None
    graph: Tensor  # the graph that each query belongs to


@torch.no_grad()
def answer(
    model: nn.Module,
    run: Callable[[Batch], Tensor],
    batches: Dealt[Batch],
    batch_size: int,
    processes: Processes = ALONE,
) -> Answers:
    """What `run` computes with a model in evaluation mode.

    Batches have at most `batch_size` graphs, or queries, and fewer if memory runs out. Several processes each answer
    for a share, and all of them return the whole.
    """
    check_whole(batch_size, "batch_size", "the graphs in a batch")
    was_training = model.training
    part, found = batches.part, []
    mine = processes.share(torch.arange(batches.num_items))
    waiting = list(mine.split(batch_size)) if mine.numel() else []
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
    return Answers(out, target, owner.to(out.device))


def predictions(network: Callable[..., Tensor]) -> Callable[[GraphBatch], Tensor]:
    """What a network says about a batch."""
    return lambda batch: network(batch.ready, batch.graph, batch.num_graphs)
