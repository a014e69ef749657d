"""Batches of the queries of a part, in place of its graphs: what a large graph is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.models.large_graph import LargeGraph
from idgnn.models.predictor import Predictor, both_directions, read_side_by_side
from idgnn.tasks.query_set import QuerySet
from idgnn.training.batches import GraphBatch
from idgnn.training.preparing import Order, Preparer
from idgnn.training.seeds import seed_of


@dataclass(frozen=True)
class RootBatches:
    """Cuts batches of queries out of a part.

    Args:
        part: Graphs and queries, on the CPU.
        preparer: For its graphs.
        fanout: The most in-neighbors of a node in each hop; none: all of them, and answers are exact.
        device: Where batches go.
        reads_both: Whether pairs are embedded in both directions.
    """

    part: QuerySet
    preparer: Preparer
    fanout: tuple[int, ...]
    device: torch.device
    reads_both: bool = False

    @property
    def num_items(self) -> int:
        """The number of queries, which are assigned to batches."""
        return self._queries.size(-1)

    def count(self, items: Tensor) -> int:
        """How many answers a batch of these queries has."""
        return items.numel()

    def each(self, assigned: Sequence[Tensor], seed: int = 0) -> Iterator[GraphBatch]:
        """A batch for each group of queries; `seed` determines the neighbors that are sampled."""
        queries, owner, target = self._queries, self.part.query_owner, self.part.target
        # A query is in one batch alone, so its number tells batches apart.
        of_batches = [both_directions(queries[..., i]) if self.reads_both else queries[..., i] for i in assigned]
        seeds = [seed_of(seed, int(items[0])) for items in assigned]
        orders = [Order(some.numpy(), self.fanout, drawn) for some, drawn in zip(of_batches, seeds, strict=True)]
        batches = self.preparer.each(orders, self.device)
        for items, some, ready in zip(assigned, of_batches, batches, strict=True):
            ready = read_side_by_side(ready, some) if self.reads_both else ready
            wanted = None if target is None else target[items].to(self.device)
            yield GraphBatch(ready, owner[items].to(self.device), self.part.num_graphs, wanted)

    @property
    def _queries(self) -> Tensor:
        return torch.arange(self.part.x.size(0)) if self.part.queries is None else self.part.queries


class RootSource:
    """Makes :class:`RootBatches` for the parts of a problem. What parts have in common is worked out once.

    Args:
        model: What batches are prepared for.
        workers: Processes that prepare batches of each graph.
        device: Where batches go.
    """

    def __init__(self, model: Predictor, workers: int, device: torch.device) -> None:
        self.model, self.workers, self.device = model, workers, device
        self._held: list[tuple[QuerySet, Preparer]] = []

    def batches(self, part: QuerySet, fanout: tuple[int, ...] = ()) -> RootBatches:
        """Of a part, on the CPU."""
        return RootBatches(part, self._preparer(part), fanout, self.device, self.model.reads_both)

    def _preparer(self, part: QuerySet) -> Preparer:
        for known, preparer in self._held:
            if known.x is part.x and known.edge_index is part.edge_index:  # the same graph, asked other questions
                return preparer
        roots = torch.arange(part.x.size(0)) if part.queries is None or part.queries.dim() == 1 else None
        data = Data(part.x, part.edge_index, part.edge_attr, edge_weight=part.edge_weight)
        self._held.append((part, Preparer(LargeGraph(self.model.encoder, data, roots), self.workers)))
        return self._held[-1][1]
