"""Batches of graphs, cut on the device where the data lie."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from idgnn.identity.cost import TooLargeError
from idgnn.identity.schedule import Schedule
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.prepared import Prepared, PreparedGraphs
from idgnn.tasks.query_set import QuerySet

if TYPE_CHECKING:
    from idgnn.models.inputs import AnyEncoder
    from idgnn.models.predictor import Predictor


@dataclass(frozen=True)
class GraphBatch:
    """A batch, ready for a network."""

    ready: Any  # what the network reads: `Prepared`, or a form of its own
    graph: Tensor  # [embeddings] the graph, within the batch, that each belongs to
    num_graphs: int
    target: Tensor | None  # [queries], or [graphs] if graphs are asked about
    weight: float = 1.0  # of its loss among those of all processes, 1 if all have equal shares of a batch
    real: Tensor | None = None  # [queries] or [graphs] whether each is no padding; None: all are real


class BatchSource(Protocol):
    """What training takes batches from: :class:`Batches`, or those of a network that prepares its own."""

    part: QuerySet

    @property
    def num_items(self) -> int:
        """The number of graphs, which are assigned to batches."""
        ...

    def count(self, graphs: Tensor) -> int:
        """How many answers a batch of these graphs has."""
        ...

    def each(self, assigned: Sequence[Tensor], seed: int = 0) -> Iterator[GraphBatch]:
        """A batch for each group of graphs."""
        ...

    def cut(self, graphs: Tensor) -> GraphBatch:
        """The batch of these graphs `[graphs]`, ids on the CPU."""
        ...


@runtime_checkable
class PreparesBatches(Protocol):
    """A network that is trained, but reads graphs in a form of its own: it turns `batch.ready` into answers.

    All else that training needs of a network is `forward(ready, graph, num_graphs)`, as of a predictor.
    """

    def batches(self, part: QuerySet) -> BatchSource:
        """Batches of the graphs and queries of a part, which lies on the device."""
        ...


class Batches:
    """Cuts batches out of a part.

    Which rows a network computes is worked out once for all graphs, and a batch is copied out of that
    (:mod:`idgnn.identity.cutting`). Where that is too large for memory, and for a wrapped model, every batch is worked
    out by itself.

    Args:
        part: Graphs and queries, on the device.
        encoder: What they are prepared for: a predictor, or an encoder alone.
        over: Batches of the same graphs with other queries, which are not used any more. If these fit into their
            tensors, `whole.follows`, and steps that were recorded with them go on with the new queries.
        spare: The share of room that is left for that in new tensors.
    """

    def __init__(
        self, part: QuerySet, encoder: AnyEncoder | Predictor, over: Batches | None = None, spare: float = 0.0
    ) -> None:
        self.part, self.encoder, self.target = part, encoder, part.target
        self.whole: PreparedGraphs | None = None
        if isinstance(getattr(encoder, "encoder", encoder), IdentityAwareModel):  # no schedule to cut batches out of
            return
        try:
            ready = self._prepare(part)
            if isinstance(ready.plan, Schedule):  # layers of the user's own have none
                before = None if over is None else over.whole
                self.whole = PreparedGraphs(ready, part.owner, part.num_graphs, before, spare)
                if part.level != "graph":
                    self.target = self.whole.with_room(part.target, None if over is None else over.target)
        except (TooLargeError, torch.OutOfMemoryError):
            self.whole = None

    @property
    def num_items(self) -> int:
        """The number of graphs, which are assigned to batches."""
        return self.part.num_graphs

    def count(self, graphs: Tensor) -> int:
        """How many answers a batch of these graphs has."""
        return graphs.numel() if self.part.level == "graph" else int(self._num_queries[graphs].sum())

    def each(self, assigned: Sequence[Tensor], seed: int = 0) -> Iterator[GraphBatch]:
        """A batch for each group of graphs; nothing in it is random."""
        for graphs in assigned:
            yield self.cut(graphs)

    def cut(self, graphs: Tensor) -> GraphBatch:
        """The batch of these graphs `[graphs]`, ids on the CPU."""
        if self.whole is None:
            return self._all if self.part.num_graphs == 1 else self._batch(self.part.subset(graphs))
        ready, cut = self.whole.cut(graphs)
        target, queries = self.target, self.whole.queries
        if target is not None:
            target = target[graphs.to(target.device)] if self.part.level == "graph" else cut.take(target, queries)
        return GraphBatch(ready, cut.graph(queries), graphs.numel(), target)

    @cached_property
    def _all(self) -> GraphBatch:
        """All graphs: the same batch in each epoch if there is only one."""
        return self._batch(self.part)

    def _batch(self, part: QuerySet) -> GraphBatch:
        return GraphBatch(self._prepare(part), part.query_owner, part.num_graphs, part.target)

    @cached_property
    def _num_queries(self) -> Tensor:
        """Of each graph, on the CPU."""
        return torch.bincount(self.part.query_owner, minlength=self.part.num_graphs).cpu()

    def _prepare(self, part: QuerySet) -> Prepared:
        with warnings.catch_warnings():
            # Most pairs that are no edges lie far apart; that they do is part of the task.
            warnings.simplefilter("ignore", UnreachedColorWarning)
            return self.encoder.prepare(
                part.x,
                part.edge_index,
                edge_attr=part.edge_attr if self.encoder.takes("edge_attr") else None,
                edge_weight=part.edge_weight if self.encoder.takes("edge_weight") else None,
                queries=part.queries,
            )
