"""Two runs of a layer made into one: sources from the first, targets from the second.

A layer that takes one tensor of states transforms it before it calls `propagate`, and `propagate` lifts the result to
the edges: `x_j` from their sources, `x_i` from their targets. So the layer is run on the colored states first, up to
its call of `propagate`, and what it gives to it is noted. In the real run, on the plain states, `propagate` is given
pairs: from the rehearsal for the colored sources, from the real run for everything else. `edge_updater` likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing

from idgnn.layers.wrapping.colored_rows import ColoredRows
from idgnn.layers.wrapping.shadow import shadowed


class _Rehearsed(BaseException):
    """Ends a rehearsal; derived from BaseException so that no layer takes it for a failure of its own."""


class Unrehearsed(BaseException):
    """The real run calls `propagate` more often than the rehearsal got to."""


@dataclass(frozen=True)
class Record:
    """What a layer gave to `propagate` and `edge_updater`, call by call."""

    propagate: list[tuple[Any, dict[str, Any]]]
    edge_updater: list[tuple[Any, dict[str, Any]]]


def rehearse(layer: MessagePassing, run: Callable[[], Any], rounds: int | None) -> Record:
    """Calls `run`, which runs the layer, up to call number `rounds` of `propagate` or to its end, and notes what it
    sends."""
    record = Record([], [])
    original_propagate, original_edge_updater = layer.propagate, layer.edge_updater

    def propagate(edge_index: Any, size: Any = None, **kwargs: Any) -> Any:
        record.propagate.append((edge_index, kwargs))
        if len(record.propagate) == rounds:
            raise _Rehearsed
        return original_propagate(edge_index, size=size, **kwargs)

    def edge_updater(edge_index: Any, size: Any = None, **kwargs: Any) -> Any:
        record.edge_updater.append((edge_index, kwargs))
        return original_edge_updater(edge_index, size=size, **kwargs)

    methods = {"propagate": propagate, "edge_updater": edge_updater}
    with shadowed(layer, **methods), _buffers_kept(layer), suppress(_Rehearsed):
        run()
    return record


@contextmanager
def sources_from(layer: MessagePassing, record: Record, rows: ColoredRows) -> Iterator[None]:
    """Within the block, what the layer lifts from the sources of edges comes from the record where it is colored."""
    original_propagate, original_edge_updater = layer.propagate, layer.edge_updater
    propagated, updated = iter(record.propagate), iter(record.edge_updater)
    dim = layer.node_dim

    def source(plain: Any, seen: Any) -> Any:
        plain, seen = _source(plain), _source(seen)
        if not isinstance(plain, Tensor) or not isinstance(seen, Tensor) or plain is seen:
            return plain
        return rows.replace(plain, lambda index: seen.index_select(dim, index), dim)

    def pairs(kwargs: dict[str, Any], seen: dict[str, Any], names: list[str]) -> dict[str, Any]:
        both = {n: (source(v, seen.get(n)), _target(v)) for n, v in kwargs.items() if n in names and v is not None}
        return {**kwargs, **both}

    def propagate(edge_index: Any, size: Any = None, **kwargs: Any) -> Any:
        edge_index = edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index
        _, seen = _following(propagated)
        sent = sent_names(layer, "message", "aggregate", "update")
        # A name that is also asked for as it is (`x` beside `x_j`) has to stay one tensor: its messages change later.
        as_it_is = [name for name in sent if name in requested(layer, "message", "aggregate", "update")]
        with ExitStack() as stack:
            if as_it_is:
                late = {f"{n}_j": source(kwargs[n], seen.get(n)) for n in as_it_is if n in kwargs}
                lifted = {n: v.index_select(dim, edge_index[0]) for n, v in late.items() if isinstance(v, Tensor)}
                message = layer.message
                stack.enter_context(shadowed(layer, message=lambda **inputs: message(**{**inputs, **lifted})))
            kwargs = pairs(kwargs, seen, [name for name in sent if name not in as_it_is])
            return original_propagate(edge_index, size=size, **kwargs)

    def edge_updater(edge_index: Any, size: Any = None, **kwargs: Any) -> Any:
        _, seen = _following(updated)
        kwargs = pairs(kwargs, seen, sent_names(layer, "edge_update"))
        return original_edge_updater(edge_index, size=size, **kwargs)

    with shadowed(layer, propagate=propagate, edge_updater=edge_updater):
        yield


def _source(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


def _target(value: Any) -> Any:
    return value[1] if isinstance(value, (tuple, list)) else value


def sent_names(layer: MessagePassing, *functions: str) -> list[str]:
    """The arguments of `propagate` that these functions of the layer read from the source of an edge, as `name_j`."""
    special = layer.special_args
    return [name[:-2] for name in requested(layer, *functions) if name.endswith("_j") and name not in special]


def requested(layer: MessagePassing, *functions: str) -> list[str]:
    """The names of the arguments that these functions of the layer take."""
    return list(layer.inspector.get_flat_param_names(list(functions)))


def _following(calls: Iterator[tuple[Any, dict[str, Any]]]) -> tuple[Any, dict[str, Any]]:
    for call in calls:
        return call
    raise Unrehearsed


@contextmanager
def _buffers_kept(layer: MessagePassing) -> Iterator[None]:
    """A rehearsal is not a training step: running statistics inside the layer stay as they were."""
    kept = [(buffer, buffer.clone()) for buffer in layer.buffers()] if layer.training else []
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in kept:
                buffer.copy_(value)
