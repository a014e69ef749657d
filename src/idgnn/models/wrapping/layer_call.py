"""One call of a layer, the route by which it is colored, and the names of what its functions take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import is_sparse


@dataclass(frozen=True)
class LayerCall:
    """The arguments of one call of a layer, and where its states `x` are among them."""

    names: tuple[str, ...]  # of all arguments, in order; a star and a number for those without a name
    values: tuple[Any, ...]
    num_args: int  # how many are positional
    key: int  # the position of x

    @staticmethod
    def of(layer: MessagePassing, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LayerCall:
        """Finds the states: by the name x, else they come first."""
        values = tuple(v.as_tensor() if isinstance(v, EdgeIndex) else v for v in (*args, *kwargs.values()))
        if any(is_sparse(value) for value in values):
            raise ValueError(
                "a layer that is to be colored was given a sparse matrix, and colors go along edges. Pass edge_index "
                "[2, num_edges], for example by torch_geometric.utils.to_edge_index."
            )
        positional = list(inspect.signature(layer.forward).parameters)
        names = (*(positional[i] if i < len(positional) else f"*{i}" for i in range(len(args))), *kwargs)
        first = "x" if "x" in positional else positional[0] if positional else ""
        if first not in names:
            raise ValueError("a layer was called without the states x of its nodes. Pass them first, as PyG layers do.")
        return LayerCall(names, values, len(args), names.index(first))

    @property
    def x(self) -> Any:
        return self.values[self.key]

    @property
    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as they are passed."""
        n = self.num_args
        return self.values[:n], dict(zip(self.names[n:], self.values[n:], strict=True))

    def run(self, layer: MessagePassing) -> Any:
        """The layer's own forward."""
        args, kwargs = self.inputs
        return layer.forward(*args, **kwargs)

    def with_x(self, x: Any) -> LayerCall:
        """The same call on other states."""
        return self.map(lambda i, _: x if i == self.key else self.values[i])

    def map(self, change: Callable[[int, str], Any]) -> LayerCall:
        """The call with other values, by position and name."""
        return replace(self, values=tuple(change(i, name) for i, name in enumerate(self.names)))


Role = Literal["rows", "edges", "edge_index", "size", "count", "same"]


@dataclass(frozen=True)
class Route:
    """How a layer is colored."""

    kind: Literal["pairs", "rows", "whole"]
    pairs: bool = False  # whether it takes (x_source, x_target) at all
    repeats: bool = False  # whether it then applies a weight to both, which it would apply to `x` once
    rounds: int = 0  # how often it calls `propagate`
    roles: dict[str, Role] | None = None  # of its arguments, for the call on colored rows alone


def rows_call(call: LayerCall, sent: Tensor, index: Tensor, roles: dict[str, Role]) -> LayerCall:
    """A call on the colored rows alone, each with an edge to itself, so that the n-th edge reads the n-th row."""
    count = index.numel()

    def change(i: int, name: str) -> Any:
        value, role = call.values[i], roles.get(name)
        if i == call.key:
            return sent
        if value is None:
            return None
        if role == "edge_index":
            return torch.arange(count, device=index.device).expand(2, count)
        if role == "edges":
            return value.new_zeros(count, *value.shape[1:])
        if role == "rows":
            return value.index_select(0, index)
        if role == "size":
            return count, count
        return count if role == "count" else value

    return call.map(change)


def sent_names(layer: MessagePassing, *functions: str) -> list[str]:
    """The arguments of `propagate` that these functions of the layer read from the source of an edge, as `name_j`."""
    special = layer.special_args
    return [name[:-2] for name in requested(layer, *functions) if name.endswith("_j") and name not in special]


def requested(layer: MessagePassing, *functions: str) -> list[str]:
    """The names of the arguments that these functions of the layer take."""
    return list(layer.inspector.get_flat_param_names(list(functions)))
