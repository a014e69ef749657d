"""What a model is called with, and the rows of what it returns."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.utils import is_sparse

from idgnn.identity.checks import check_edge_index, check_features, check_one_per_edge

# Numbers that describe the data. All others may be a number of rounds.
_SIZES = ("num_nodes", "batch_size", "num_graphs", "dim_size")


@dataclass(frozen=True)
class ModelCall:
    """The arguments of one call of a model, with their names as far as the model tells them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]  # of `args`; the n-th one without a name is "argument n"
    x: Tensor
    edge_index: Tensor

    @staticmethod
    def of(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ModelCall:
        """Finds `x` and `edge_index`: by name, else in PyG's order, else as attributes of a `Data`."""
        args = tuple(value.as_tensor() if isinstance(value, EdgeIndex) else value for value in args)
        kwargs = {key: value.as_tensor() if isinstance(value, EdgeIndex) else value for key, value in kwargs.items()}
        positional = [
            parameter.name
            for parameter in inspect.signature(module.forward).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        names = tuple(positional[i] if i < len(positional) else f"argument {i + 1}" for i in range(len(args)))
        named = dict(zip(names, args, strict=True)) | kwargs
        data = next((value for value in (*args, *kwargs.values()) if isinstance(value, Data)), None)
        if data is not None:
            x, edge_index = data.x, data.edge_index
        else:
            x = named.get("x", args[0] if args else None)
            edge_index = named.get("edge_index", args[1] if len(args) > 1 else None)
        if isinstance(x, Tensor) and x is edge_index:
            raise ValueError(
                f"{type(module).__name__} takes no features. What it keeps for each node has to be an argument, to be "
                "carried over to the identity graph: write it so that it is called as model(x, edge_index, ...)."
            )
        if isinstance(x, dict):
            raise ValueError(
                f"{type(module).__name__} was called with x of type dict. The forward of a model over several node "
                "types is known by the names x_dict and edge_index_dict of its arguments, or by a hint dict[str, "
                "Tensor]: name them so, and make it identity-aware again."
            )
        if not isinstance(x, Tensor) or x.dim() == 0:
            raise ValueError(
                f"{type(module).__name__} was called with x of type {type(x).__name__}, expected a tensor with one row "
                "per node. Call it as model(x, edge_index, ...), or with a PyG Data that has both."
            )
        if not isinstance(edge_index, Tensor) or is_sparse(edge_index):
            raise ValueError(
                f"{type(module).__name__} was called with edge_index of type {type(edge_index).__name__}, expected a "
                "[2, num_edges] tensor of node ids. A sparse matrix becomes one by torch_geometric.utils.to_edge_index."
            )
        return ModelCall(args, kwargs, names, x, edge_index)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self.edge_index.size(1)

    @property
    def sized(self) -> bool:
        """Whether the number of rows is an argument: then all rounds have as many."""
        return any(name in ("size", "num_nodes") and value is not None for name, value in self.leaves)

    @property
    def leaves(self) -> Iterator[tuple[str, Any]]:
        """All values with their names, those inside of containers and `Data` objects too."""
        yield from _leaves([*zip(self.names, self.args, strict=True), *self.kwargs.items()])

    @property
    def settings(self) -> str:
        """What the number of rounds may depend on: the arguments that are no tensors, and which tensors are given."""
        named = (*zip(self.names, self.args, strict=True), *self.kwargs.items())
        numbers = [(n, v) for n, v in named if isinstance(v, bool | int | float | str) and n not in _SIZES]
        return repr((numbers, [name for name, value in self.leaves if isinstance(value, Tensor)]))

    def check(self) -> None:
        """Refuses features and edges that do not fit together."""
        check_features(self.x, self.num_nodes)
        check_edge_index(self.edge_index, self.num_nodes)
        for name, value in self.leaves:
            if name in ("edge_attr", "edge_weight") and isinstance(value, Tensor):
                check_one_per_edge(value, self.num_edges, name)

    def map(self, change: Callable[[str, Any], Any]) -> ModelCall:
        """The call with every value changed, with its name at hand; those inside of containers and `Data` too."""
        found = {"x": self.x, "edge_index": self.edge_index}

        def inside(name: str, value: Any) -> Any:
            if isinstance(value, Data):
                changed = copy.copy(value)
                for key in value.to_dict():
                    if key == "ptr":
                        del changed.ptr  # the rows of one graph do not lie side by side
                    else:
                        changed[key] = inside(key, value[key])
                return changed
            if isinstance(value, dict):
                return {key: inside(f"{name}[{key!r}]", item) for key, item in value.items()}
            if type(value) in (tuple, list) and name != "size":
                return type(value)(inside(f"{name}[{i}]", item) for i, item in enumerate(value))
            changed = change(name, value)
            if value is self.x:
                found["x"] = changed
            elif value is self.edge_index:
                found["edge_index"] = changed
            return changed

        args = tuple(inside(name, value) for name, value in zip(self.names, self.args, strict=True))
        kwargs = {name: inside(name, value) for name, value in self.kwargs.items()}
        return ModelCall(args, kwargs, self.names, **found)

    def replaced(self, *, x: Tensor | None = None, edge_index: Tensor | None = None) -> ModelCall:
        """The same call on other states, or along other edges of the same nodes."""

        def change(_: str, value: Any) -> Any:
            if value is self.x and x is not None:
                return x
            return edge_index if value is self.edge_index and edge_index is not None else value

        return self.map(change)

    def fresh(self) -> ModelCall:
        """The same call on a copy of the states: reversible blocks free the memory of what they are given."""
        return self.replaced(x=self.x.clone())

    def double(self) -> ModelCall:
        """The same call in double precision."""
        return self.map(lambda _, value: tree_map(_double, value))


def _leaves(named: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in named:
        if isinstance(value, Data):
            yield from _leaves([(key, item) for key, item in value.to_dict().items() if key != "ptr"])
        elif isinstance(value, dict):
            yield from _leaves([(f"{name}[{key!r}]", item) for key, item in value.items()])
        elif type(value) in (tuple, list) and name != "size":
            yield from _leaves([(f"{name}[{i}]", item) for i, item in enumerate(value)])
        else:
            yield name, value


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def rows_of(output: Any, num_rows: int, read: Tensor | None, name: str) -> Any:
    """The rows `read` of an output with one row per node (all of them if `None`); refuses any other output."""
    if isinstance(output, (tuple, list)) and output:
        return type(output)(rows_of(part, num_rows, read, name) for part in output)
    if not isinstance(output, Tensor) or output.dim() == 0 or output.size(0) != num_rows:
        given = f"a tensor of shape {list(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"{name} returned {given} for {num_rows} nodes, expected one row per node: it seems to pool inside. Make "
            "its encoder identity-aware and pool after: global_add_pool(identity_aware(encoder)(x, edge_index), batch)."
        )
    return output if read is None else torch.index_select(output, 0, read)
