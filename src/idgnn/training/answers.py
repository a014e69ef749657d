"""What a network says about a whole part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from idgnn.identity.checks import check_whole
from idgnn.training.batches import Batches, GraphBatch
from idgnn.training.devices import is_out_of_memory


@dataclass(frozen=True)
class Answers:
    """Outputs for all queries of a part, in their order."""

    out: Tensor  # [queries, numbers], or [graphs, numbers] if graphs are asked about
    target: Tensor | None
    graph: Tensor  # the graph that each query belongs to


@torch.no_grad()
def answer(model: nn.Module, run: Callable[[GraphBatch], Tensor], batches: Batches, batch_size: int) -> Answers:
    """What `run` computes with a model in evaluation mode.

    Batches have at most `batch_size` graphs, and fewer if memory runs out.
    """
    check_whole(batch_size, "batch_size", "the graphs in a batch")
    was_training = model.training
    part, found, first = batches.part, [], 0
    model.eval()
    try:
        while first < part.num_graphs:
            graphs = torch.arange(first, min(first + batch_size, part.num_graphs))
            try:
                found.append(run(batches.cut(graphs)).float())
                first += graphs.numel()
            except Exception as error:
                if not is_out_of_memory(error) or graphs.numel() == 1:
                    raise
                batch_size = -(-graphs.numel() // 2)
    finally:
        model.train(was_training)
    owner = torch.arange(part.num_graphs, device=part.owner.device) if part.level == "graph" else part.query_owner
    return Answers(torch.cat(found), part.target, owner)


def predictions(network: Callable[..., Tensor]) -> Callable[[GraphBatch], Tensor]:
    """What a network says about a batch."""
    return lambda batch: network(batch.ready, batch.graph, batch.num_graphs)
