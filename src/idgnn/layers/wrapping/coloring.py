r"""Coloring what a PyG layer sends and nothing else: the heterogeneous message passing of Eq. 3.

A colored node's *message* comes from :math:`\mathbf{W}_1 \mathbf{h} + \mathbf{b}_1`; the state that a node brings to
its own AGG stays as it is. So a layer needs two versions of its input, one to send and one to receive with:

* *pairs*: most PyG layers take `(x_source, x_target)`, and are given the colored and the plain states;
* *messages*: the others are rehearsed on the colored states first (:mod:`idgnn.layers.wrapping.rehearsal`). In the
  real run, on the plain states, what is lifted from the source of an edge comes from the rehearsal.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import is_sparse

from idgnn.layers.wrapping.color_map import ColorMap
from idgnn.layers.wrapping.colored_rows import ColoredRows
from idgnn.layers.wrapping.rehearsal import Unrehearsed, rehearse, sources_from


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
                "a layer that is to be colored was given a sparse matrix, and colors go along edges. Pass edge_index "
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

    def run(self, forward: Callable[..., Any]) -> Any:
        return forward(*self.args, **self.kwargs)

    def with_x(self, x: Any) -> Call:
        """The same call on other states."""
        if isinstance(self.key, int):
            return Call((*self.args[: self.key], x, *self.args[self.key + 1 :]), self.kwargs, self.key)
        return Call(self.args, {**self.kwargs, self.key: x}, self.key)


@dataclass(frozen=True)
class Route:
    """How a layer is colored, found out at its first call."""

    pairs: bool
    rounds: int  # how often it calls `propagate`


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


def run_colored(
    layer: MessagePassing, forward: Callable[..., Any], call: Call, rows: ColoredRows, color: ColorMap, route: Route
) -> Any:
    """The output of the layer, whose own `forward` is given, when the messages of `rows` are colored."""

    def colored(x: Tensor) -> Tensor:
        return rows.replace(x, lambda index: color(x.index_select(layer.node_dim, index)), layer.node_dim)

    source, target = call.x if isinstance(call.x, tuple) else (call.x, call.x)
    if not isinstance(source, Tensor):
        raise ValueError(
            f"{type(layer).__name__} was given no states to send: x is {type(source).__name__}, expected a tensor."
        )
    if route.pairs or isinstance(call.x, tuple):
        return call.with_x((colored(source), target)).run(forward)
    rehearsal = call.with_x(colored(source))
    for rounds in (route.rounds, None):
        record = rehearse(layer, lambda: rehearsal.run(forward), rounds)
        try:
            with sources_from(layer, record, rows):
                return call.run(forward)
        except Unrehearsed:
            continue
    raise ValueError(
        f"{type(layer).__name__} calls propagate a different number of times when the states differ, so that messages "
        "cannot be told apart. Make the number of calls independent of x."
    )
