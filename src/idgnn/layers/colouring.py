r"""Colouring what a PyG layer sends and nothing else: the heterogeneous message passing of Eq. 3.

A coloured node's *message* comes from :math:`\mathbf{W}_1 \mathbf{h} + \mathbf{b}_1`; the state that a node brings to
its own AGG stays as it is. So a layer needs two versions of its input, one to send and one to receive with:

* *pairs*: most PyG layers take `(x_source, x_target)`, and are given the coloured and the plain states;
* *messages*: the others are rehearsed on the coloured states first, up to their call of `propagate`. In the real run,
  on the plain states, everything that `propagate` lifts from the source of an edge (`x_j`) is taken from the rehearsal,
  and everything from its target (`x_i`) stays.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import is_sparse

from idgnn.layers.colour_map import ColourMap
from idgnn.layers.shadow import shadowed


@dataclass(frozen=True)
class Call:
    """The arguments of one call of a layer, and where its states `x` are among them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    key: int | str

    @staticmethod
    def of(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        if any(is_sparse(value) for value in (*args, *kwargs.values())):
            raise ValueError(
                "a layer that is to be coloured was given a sparse matrix, and colours go along edges. Pass edge_index "
                "[2, num_edges], for example by torch_geometric.utils.to_edge_index."
            )
        names = list(inspect.signature(forward).parameters)
        index = names.index("x") if "x" in names else 0
        if index < len(args):
            return Call(args, kwargs, index)
        if names and names[index] in kwargs:
            return Call(args, kwargs, names[index])
        raise ValueError("a layer was called without the states x of its nodes. Pass them first, as PyG layers do.")

    @property
    def x(self) -> Any:
        return self.args[self.key] if isinstance(self.key, int) else self.kwargs[self.key]

    def with_x(self, x: Any) -> Call:
        """The same call on other states."""
        if isinstance(self.key, int):
            return Call((*self.args[: self.key], x, *self.args[self.key + 1 :]), self.kwargs, self.key)
        return Call(self.args, {**self.kwargs, self.key: x}, self.key)


@dataclass(frozen=True)
class Rows:
    """The coloured rows of a graph."""

    index: Tensor  # [num_coloured]
    total: int

    @staticmethod
    def of(coloured: Tensor) -> Rows | None:
        """The rows that a mask names, `None` if it names none."""
        if not isinstance(coloured, Tensor) or coloured.dim() != 1 or coloured.dtype != torch.bool:
            given = f"{coloured.dtype} {list(coloured.shape)}" if isinstance(coloured, Tensor) else repr(coloured)
            raise ValueError(f"coloured is {given}, expected a bool tensor with one entry per row: graph.coloured.")
        index = coloured.nonzero().flatten()
        return Rows(index, coloured.numel()) if index.numel() else None

    def replace(self, plain: Tensor, coloured: Callable[[Tensor], Tensor], dim: int) -> Tensor:
        """`plain` with its coloured rows replaced by `coloured(their indices)`. Costs a copy of `plain`."""
        if plain.size(dim) != self.total:
            raise ValueError(
                f"a layer was given {plain.size(dim)} rows, but the colour is known for {self.total}. Layers inside a "
                "model have to work on all rows of its graph; `coloured` needs one entry per row of x."
            )
        return plain.index_copy(dim, self.index, coloured(self.index))


@dataclass(frozen=True)
class Route:
    """How a layer is coloured, found out at its first call."""

    pairs: bool
    rounds: int  # how often it calls `propagate`


class _Rehearsed(BaseException):
    """Ends a rehearsal; derived from BaseException so that no layer takes it for a failure of its own."""


class _Unrehearsed(BaseException):
    """The real run calls `propagate` more often than the rehearsal got to."""


def takes_pairs(layer: MessagePassing) -> bool:
    """Whether the layer says that it takes `(x_source, x_target)`, by the type hint of its `x`.

    Example:
        >>> from torch_geometric.nn import GCNConv, SAGEConv
        >>> takes_pairs(SAGEConv(2, 2)), takes_pairs(GCNConv(2, 2))
        (True, False)
    """
    parameter = inspect.signature(type(layer).forward).parameters.get("x")
    if parameter is None:
        return False
    hint = parameter.annotation
    if isinstance(hint, str):
        try:
            hint = typing.get_type_hints(type(layer).forward)["x"]
        except Exception:  # a hint that cannot be resolved says nothing
            return False
    return any(typing.get_origin(option) is tuple for option in (hint, *typing.get_args(hint)))


def run_coloured(
    layer: MessagePassing, forward: Callable[..., Any], call: Call, rows: Rows, colour: ColourMap, route: Route
) -> Any:
    """The output of the layer, whose own `forward` is given, when the messages of `rows` are coloured."""

    def coloured(x: Tensor) -> Tensor:
        return rows.replace(x, lambda index: colour(x.index_select(layer.node_dim, index)), layer.node_dim)

    source, target = call.x if isinstance(call.x, tuple) else (call.x, call.x)
    if not isinstance(source, Tensor):
        raise ValueError(
            f"{type(layer).__name__} was given no states to send: x is {type(source).__name__}, expected a tensor."
        )
    if route.pairs or isinstance(call.x, tuple):
        real = call.with_x((coloured(source), target))
        return forward(*real.args, **real.kwargs)
    rehearsal = call.with_x(coloured(source))
    for ends_early in (True, False):
        record = rehearse(layer, forward, rehearsal, rounds=route.rounds if ends_early else None)
        try:
            with _sources_from(layer, record, rows):
                return forward(*call.args, **call.kwargs)
        except _Unrehearsed:
            continue
    raise ValueError(
        f"{type(layer).__name__} calls propagate a different number of times when the states differ, so that messages "
        "cannot be told apart. Make the number of calls independent of x."
    )


@dataclass(frozen=True)
class Record:
    """What a layer gave to `propagate` and `edge_updater`, call by call."""

    propagate: list[tuple[Any, dict[str, Any]]]
    edge_updater: list[tuple[Any, dict[str, Any]]]


def rehearse(layer: MessagePassing, forward: Callable[..., Any], call: Call, rounds: int | None) -> Record:
    """Runs the layer up to its call of `propagate` number `rounds`, or to its end, and notes what it sends."""
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
        forward(*call.args, **call.kwargs)
    return record


@contextmanager
def _sources_from(layer: MessagePassing, record: Record, rows: Rows) -> Iterator[None]:
    """Within the block, what the layer lifts from the sources of edges comes from the record where it is coloured."""
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
        as_it_is = [name for name in sent if name in _requested(layer, "message", "aggregate", "update")]
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
    return [name[:-2] for name in _requested(layer, *functions) if name.endswith("_j") and name not in special]


def _requested(layer: MessagePassing, *functions: str) -> list[str]:
    return list(layer.inspector.get_flat_param_names(list(functions)))


def _following(calls: Iterator[tuple[Any, dict[str, Any]]]) -> tuple[Any, dict[str, Any]]:
    for call in calls:
        return call
    raise _Unrehearsed


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
