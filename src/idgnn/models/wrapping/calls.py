"""Which rows are colored in a call, found by the layers that take part in it.

A call of a wrapped model has a :class:`Context`. Its layers find it by the edges that they are given: the context
belongs to the memory of the lifted `edge_index`, which is kept by whatever recomputes a layer in the backward pass
(activation checkpoints, reversible blocks), whatever thread it runs in. Edges that the model makes itself take the
context of the running call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from idgnn.models.wrapping.storage import StorageDict


@dataclass(frozen=True)
class ColoredRows:
    """The colored rows of a graph, found once and used by every layer."""

    index: Tensor  # [num_colored] in order
    total: int
    second: Tensor | None = None  # [num_colored] whether it has the second color, if there are two

    @staticmethod
    def of(colored: Tensor) -> ColoredRows | None:
        """The rows that a mask, or the color 0, 1 or 2 of each row, names; `None` if it names none."""
        if not isinstance(colored, Tensor) or colored.dim() != 1 or colored.is_floating_point():
            given = f"{colored.dtype} {list(colored.shape)}" if isinstance(colored, Tensor) else repr(colored)
            raise ValueError(f"colored is {given}, expected a bool tensor with one entry per row: graph.colored.")
        index = colored.nonzero().flatten()
        return ColoredRows.some(index, colored.numel(), colored) if index.numel() else None

    @staticmethod
    def some(index: Tensor, total: int, colored: Tensor) -> ColoredRows:
        """The rows `index` of `total`, with their colors out of those of all rows."""
        two = colored.dtype != torch.bool
        return ColoredRows(index, total, colored.index_select(0, index) == 2 if two else None)

    @cached_property
    def rank(self) -> Tensor:
        """The position of each row among the colored ones `[total]`, -1 for the others."""
        rank = self.index.new_full((self.total,), -1)
        rank[self.index] = torch.arange(self.index.numel(), device=rank.device)
        return rank

    def replace(self, plain: Tensor, colored: Tensor, dim: int) -> Tensor:
        """`plain` with its colored rows replaced. Costs a copy of `plain`, and one of its gradient."""
        self.check(plain, dim)
        return plain.index_copy(dim, self.index, colored)

    def check(self, plain: Tensor, dim: int) -> None:
        """Refuses states of another number of rows."""
        if plain.size(dim) != self.total:
            raise ValueError(
                f"a layer was given {plain.size(dim)} rows, but the color is known for {self.total}. Layers inside a "
                "model have to work on all rows of its graph; `colored` needs one entry per row of x."
            )


@dataclass(frozen=True)
class Trim:
    """How many rows and edges matter in each round; they are ordered so that those are the first ones."""

    rounds: dict[str, int]  # the round that each layer is, by its name
    rows: tuple[ColoredRows | None, ...]  # the sources of round 1, 2, ..., K
    num_targets: tuple[int, ...]
    num_edges: tuple[int, ...]
    least_part: float  # of the sources that are targets; then a layer may be run on all sources as its targets


@dataclass(frozen=True, eq=False)
class Context:
    """What is colored in one call of a model, or in all calls for one identity graph."""

    rows: ColoredRows
    trim: Trim | None = None


class CapturedError(Exception):
    """Ends a run of a layer whose arguments of `propagate` are known. Raised and caught in one thread; a layer that
    catches it itself merely runs on."""


@dataclass
class Captured:
    """What a layer gave to `propagate` and what `edge_update` received, call by call."""

    whole: bool  # of all rows, otherwise of the colored ones alone
    limit: int | None = None  # it ends with this call of `propagate`
    propagate: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    edge_update: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)


@dataclass
class Frame:
    """One running call of a layer."""

    layer: MessagePassing
    rows: ColoredRows | None = None
    recording: Captured | None = None  # where its arguments of `propagate` are recorded
    captured: Captured | None = None  # what its colored rows send
    own: Tensor | None = None  # the states that its rows bring to their own update
    updated: ColoredRows | None = None  # those whose update is colored, if updates are
    num_targets: int | None = None  # rows of its output that are kept, the first ones; `None`: all
    call: Any = None
    num_propagate: int = 0
    num_edge_update: int = 0
    late: dict[str, Tensor] | None = None  # messages' inputs that are replaced after they were lifted to the edges

    def records_propagate(self, edge_index: Any, kwargs: dict[str, Any]) -> bool:
        """Counts a call of `propagate`; whether its arguments were recorded, and nothing is to be replaced in it."""
        self.num_propagate += 1
        if self.recording is None:
            return False
        self.recording.propagate.append((edge_index, kwargs))
        if self.num_propagate == self.recording.limit:
            raise CapturedError
        return True


class _Local(threading.local):
    """What runs in one thread."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.current: Context | None = None
        self.plain = False  # whether layers run without color, whatever they are given


Ambiguous = Literal["plain", "ambiguous"]


class Calls:
    """The calls of one wrapped module, in all threads. Copies and pickles have none."""

    def __init__(self) -> None:
        self._given: StorageDict[Context] = StorageDict()  # by the edges that the model is given
        self._made: StorageDict[Context | Ambiguous] = StorageDict()  # by edges that the model makes
        self._local = _Local()
        self.lock = threading.RLock()  # held while the module is tried out

    def __reduce__(self) -> tuple[type[Calls], tuple[()]]:
        return Calls, ()

    @property
    def frames(self) -> list[Frame]:
        """The layers that run in this thread, the innermost one last."""
        return self._local.frames

    @property
    def colored(self) -> bool:
        """Whether a call with colored rows runs in this thread."""
        return self._local.current is not None

    def frame(self, layer: MessagePassing) -> Frame | None:
        """The running call of this layer."""
        return self.frames[-1] if self.frames and self.frames[-1].layer is layer else None

    def own(self, edges: Tensor, context: Context) -> None:
        """From now on a layer that is given these edges, in any tensor with the same memory, has this context."""
        self._given.put(edges, context)

    def is_given(self, edges: Tensor) -> bool:
        """Whether edges lie in the memory of those that the model was given."""
        return self._given.get(edges) is not None

    @contextmanager
    def running(self, context: Context | None) -> Iterator[None]:
        """Within the block this is the context of layers that are given other edges; `None`: layers are not colored."""
        local = self._local
        before = local.current, local.plain, local.frames
        local.current, local.plain, local.frames = context, context is None, []
        try:
            yield
        finally:
            local.current, local.plain, local.frames = before

    def find(self, args: Any) -> Context | None:
        """The context of a layer that is called with these arguments; `None` if it is not colored."""
        if self._local.plain:
            return None
        edges = [value for value in args if is_edges(value)]
        for value in edges:
            if (known := self._given.get(value)) is not None:
                return known
        current = self._local.current
        if current is None and is_backward():
            return self._recomputed(edges)
        for value in edges:
            known = self._made.get(value)
            mine = "plain" if current is None else current
            if known is not mine:
                self._made.put(value, mine if known is None else "ambiguous")
        return current

    def _recomputed(self, edges: list[Tensor]) -> Context | None:
        for value in edges:
            known = self._made.get(value)
            if known == "plain":
                return None
            if isinstance(known, Context):
                return known
        raise ValueError(
            "a layer is computed again in the backward pass (activation checkpointing, a reversible block) with edges "
            "that its model made inside of that part, so that it is not known which rows are colored. Compute them "
            "before, and give them to the checkpointed part as an argument."
        )


def is_edges(value: Any) -> bool:
    """Whether an argument of a layer is an `edge_index`."""
    return (
        isinstance(value, Tensor)
        and value.layout == torch.strided
        and value.dim() == 2
        and value.size(0) == 2
        and not value.is_floating_point()
        and value.dtype != torch.bool
    )


def is_backward() -> bool:
    """Whether this thread is inside of a backward pass."""
    return torch._C._current_graph_task_id() != -1
