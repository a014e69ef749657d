r"""How many rounds of message passing a network takes: the K of Algorithm 1, found out by watching it run once.

Every tensor carries a depth: the number of rounds on the longest chain that led to it. An operation passes the largest
depth of its inputs on, a call of `propagate` adds one. Branches side by side, jumping knowledge and layers that are
used several times come out right, because nothing is counted but the longest chain. Watched on the side: whether the
network sends states along edges by itself, outside of its layers, where they are neither counted nor colored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from idgnn.layers.wrapping.shadow import shadowed


@dataclass(frozen=True)
class Steps:
    """What one run showed."""

    output: Any
    total: int  # rounds on the longest chain from the inputs to the output
    inside: dict[str, int]  # the most rounds that one call of each layer took
    astray: list[str]  # layers whose `propagate` was called from outside of their `forward`
    own: list[str]  # operations outside of all layers that sent states along edges


# What sends states along edges when its index comes from them, and what does so when one factor is an adjacency matrix.
_SCATTERS = ("index_add", "index_put", "index_reduce", "scatter", "scatter_add", "scatter_reduce", "segment_reduce")
_PRODUCTS = ("addmm", "bmm", "mm", "sparse_mm", "sparse_mm_reduce_impl")


def count_steps(
    module: nn.Module,
    layers: Mapping[str, MessagePassing],
    run: Callable[..., Any],
    args: Any,
    kwargs: Any,
    edge_index: Tensor | None = None,
) -> Steps:
    """Calls `run(*args, **kwargs)`, which runs `module`, and counts the rounds of message passing on the longest chain
    from the arguments to its output. With `edge_index`, one of the arguments, messages outside of layers are found.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> net, x, edge_index = GCN(4, 8, 3), torch.randn(2, 4), torch.tensor([[0], [1]])
        >>> layers = {name: layer for name, layer in net.named_modules() if isinstance(layer, MessagePassing)}
        >>> count_steps(net, layers, net, (x, edge_index), {}).total
        3
    """
    running: list[str] = []
    depths = _Depths(running)
    for tensor in (*_held(module), *_tensors((args, kwargs))):
        depths.put(tensor, 0, along=tensor is edge_index)
    inside: dict[str, int] = dict.fromkeys(layers, 0)
    astray: list[str] = []
    with ExitStack() as stack:
        for name, layer in layers.items():
            watch = _Watch(name, layer, depths, inside, astray, running)
            stack.enter_context(shadowed(layer, forward=watch.forward, propagate=watch.propagate))
        stack.enter_context(depths)
        output = run(*args, **kwargs)
    return Steps(output, depths.deepest_of(output), inside, astray, depths.own)


class _Watch:
    """Stands in for `forward` and `propagate` of one layer."""

    def __init__(
        self,
        name: str,
        layer: MessagePassing,
        depths: _Depths,
        inside: dict[str, int],
        astray: list[str],
        running: list[str],
    ) -> None:
        self.name, self.depths, self.inside, self.astray, self.running = name, depths, inside, astray, running
        self.original_forward, self.original_propagate = layer.forward, layer.propagate

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        before = self.depths.deepest_of((args, kwargs))
        self.running.append(self.name)
        try:
            output = self.original_forward(*args, **kwargs)
        finally:
            self.running.pop()
        self.inside[self.name] = max(self.inside[self.name], self.depths.deepest_of(output) - before)
        return output

    def propagate(self, *args: Any, **kwargs: Any) -> Any:
        if self.name not in self.running:
            self.astray.append(self.name)
        depth = self.depths.deepest_of((args, kwargs)) + 1
        output = self.original_propagate(*args, **kwargs)
        for tensor in _tensors(output):
            self.depths.put(tensor, depth, along=True)
        return output


@dataclass(frozen=True)
class _Mark:
    """What is known of a storage."""

    depth: int
    along: bool  # whether edge_index had a part in it
    reference: Any  # keeps the key of the storage from being used again, not the storage alive


class _Depths(TorchDispatchMode):
    """Marks storages, so that views and in-place writes share a depth."""

    def __init__(self, running: list[str]) -> None:
        super().__init__()
        self.known: dict[Any, _Mark] = {}
        self.deepest = 0
        self.running, self.own = running, []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        inputs = list(_tensors((args, kwargs)))
        marks = [self.of(tensor) for tensor in inputs]
        if not self.running and _sends(func._schema.name.split("::")[1].strip("_"), inputs, marks):
            self.own.append(func._schema.name)
        for tensor in _tensors(output):
            before = self.known.get(_identify(tensor)[0])
            joined = [*marks, before] if before else marks
            self.put(tensor, max((m.depth for m in joined), default=0), any(m.along for m in joined))
        return output

    def deepest_of(self, values: Any) -> int:
        return max((self.of(tensor).depth for tensor in _tensors(values)), default=0)

    def of(self, tensor: Tensor) -> _Mark:
        key, _ = _identify(tensor)
        if key not in self.known:
            # It came about where nobody watched. Too deep costs time, not deep enough would be wrong.
            self.put(tensor, self.deepest, along=False)
        return self.known[key]

    def put(self, tensor: Tensor, depth: int, along: bool) -> None:
        key, reference = _identify(tensor)
        self.known[key] = _Mark(depth, along, reference)
        self.deepest = max(self.deepest, depth)


def _sends(operation: str, inputs: list[Tensor], marks: list[_Mark]) -> bool:
    """Whether an operation sends states that a layer has computed along edges. Before the first layer no state knows of
    a color, and whatever is done with them does no harm."""
    states = any(mark.depth > 0 for mark in marks)
    if operation in _SCATTERS:
        # A mask picks rows and moves nothing.
        return states and any(
            mark.along and not tensor.is_floating_point() and tensor.dtype != torch.bool
            for tensor, mark in zip(inputs, marks, strict=True)
        )
    if operation in _PRODUCTS:
        sparse = any(tensor.layout != torch.strided for tensor in inputs)
        return states and (sparse or any(mark.along and mark.depth == 0 for mark in marks))
    return False


def _identify(tensor: Tensor) -> tuple[Any, Any]:
    """A key that is not used again while the reference beside it is kept."""
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, and other tensors without a storage of their own
        return id(tensor), tensor
    return storage._cdata, StorageWeakRef(storage)


def _tensors(values: Any) -> Iterator[Tensor]:
    for leaf in tree_leaves(values):
        if isinstance(leaf, Data):
            yield from _tensors(list(leaf.to_dict().values()))
        elif isinstance(leaf, Tensor):
            yield leaf


def _held(module: nn.Module) -> Iterator[Tensor]:
    """The tensors that a module brings along: parameters, buffers, and what lies in its attributes."""
    for child in module.modules():
        for held in (child._parameters, child._buffers, vars(child)):
            for value in held.values():
                if isinstance(value, Tensor) and not torch.nn.parameter.is_lazy(value):
                    yield value
