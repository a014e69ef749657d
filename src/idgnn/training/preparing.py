"""Batches of queries made ready for a network: here, or by worker processes beside training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from idgnn.identity.cost import keep_freed_memory
from idgnn.training.packing import Packed, pack


@dataclass(frozen=True)
class Order:
    """What is to be prepared. It says all, so that it does not matter which process does it."""

    queries: np.ndarray  # [queries] nodes or [2, queries] pairs
    fanout: tuple[int, ...] = ()
    seed: int = 0


class PreparesQueries(Protocol):
    """A graph of which batches of queries are prepared: a :class:`LargeGraph`, or one of several node types."""

    def prepare(self, queries: Tensor, fanout: Sequence[int] = (), seed: int = 0) -> Any:
        """What a network runs on to answer nodes `[queries]` or pairs `[2, queries]`."""
        ...


class Preparer:
    """Prepares batches of queries about one graph.

    Args:
        graph: The graph.
        num_workers: Processes that prepare batches ahead; they stay from one call to the next. With 0 each batch is
            prepared when it is asked for.
    """

    def __init__(self, graph: PreparesQueries, num_workers: int = 0) -> None:
        keep_freed_memory()
        self.graph, self._waiting = graph, list[Order]()
        self._loader: DataLoader | None = None
        if num_workers > 0:
            self._loader = DataLoader(
                _Orders(graph),
                batch_size=None,
                sampler=self._waiting,
                num_workers=num_workers,
                persistent_workers=True,
                collate_fn=_as_it_is,
                generator=torch.Generator(),  # or it would draw from PyTorch's own, which the network draws from
            )

    def each(self, orders: Sequence[Order], device: torch.device | str = "cpu") -> Iterator[Any]:
        """What was ordered, in order, on a device. One call at a time: another one ends this."""
        if self._loader is None:
            on_cpu = torch.device(device).type == "cpu"
            for order in orders:
                ready = _prepared(self.graph, order)
                yield ready if on_cpu else pack(ready).unpack(device)
        elif orders:
            self._waiting[:] = orders
            for packed in self._loader:
                yield packed.unpack(device)


class _Orders(Dataset):
    """What worker processes hold: an order goes in, a batch comes out."""

    def __init__(self, graph: PreparesQueries) -> None:
        self.graph = graph

    def __getitem__(self, order: Order) -> Packed:
        return pack(_prepared(self.graph, order))


def _prepared(graph: PreparesQueries, order: Order) -> Any:
    return graph.prepare(torch.from_numpy(order.queries), order.fanout, order.seed)


def _as_it_is(packed: Any) -> Any:
    return packed
