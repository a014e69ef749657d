r"""How many rounds of message passing a network takes: the K of Algorithm 1, detected in one run.

Every tensor carries a depth: the number of rounds on the longest chain that led to it. An operation passes the largest
depth of its inputs on, a call of `propagate` adds one. Branches side by side, jumping knowledge and layers that are
used several times come out right, because nothing is counted but the longest chain. Observed besides: whether the
network sends states along edges by itself, outside of its layers, where they are neither counted nor colored; and
whether it is a chain of layers, in which states of different depths never meet.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import MessagePassing

from idgnn.models.wrapping.storage import StorageDict

T = TypeVar("T")


@dataclass(frozen=True)
class Trace:
    """What one run showed."""

    output: Any
    num_layers: int  # rounds on the longest chain from the inputs to the output
    inside: dict[str, int]  # the most rounds that one call of each layer took
    propagate_outside_forward: list[str]  # layers whose `propagate` was called from outside of their `forward`
    own: list[str]  # operations outside of all layers that sent states along edges
    rounds: dict[str, int] | None  # of a chain of layers, the round that each of them is; `None` if it is none
    # The round of each layer that was called; `None` if one was called twice, or edges are counted outside of layers.
    once: dict[str, int] | None


# What sends states along edges when its index comes from them, and what does so when one factor is an adjacency matrix.
_SCATTERS = ("index_add", "index_put", "index_reduce", "scatter", "scatter_add", "scatter_reduce", "segment_reduce")
_PRODUCTS = ("addmm", "bmm", "mm", "sparse_mm", "sparse_mm_reduce_impl")
_EDGES = -1  # the level of what belongs to edges; that of states is their depth


def trace(
    module: nn.Module,
    layers: Mapping[str, MessagePassing],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    edge_index: Tensor | Sequence[Tensor] | None = None,
    per_edge: tuple[Tensor, ...] = (),
) -> Trace:
    """Calls `module(*args, **kwargs)` and counts the rounds of message passing on the longest chain from the arguments
    to its output. With `edge_index`, one of the arguments or several, messages outside of layers are found.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> net, x, edge_index = GCN(4, 8, 3), torch.randn(2, 4), torch.tensor([[0], [1]])
        >>> layers = {name: layer for name, layer in net.named_modules() if isinstance(layer, MessagePassing)}
        >>> trace(net, layers, (x, edge_index), {}).num_layers
        3
    """
    depths = _Depths()
    ends = (edge_index,) if isinstance(edge_index, Tensor) else tuple(edge_index or ())
    for tensor in _held(module):
        depths.put(tensor, 0)
    for tensor in _tensors((args, kwargs)):
        along = any(tensor is other for other in ends)
        edges = along or any(tensor is other for other in per_edge)
        depths.put(tensor, 0, along=along, level=_EDGES if edges else 0)
    watches = [_Watch(name, layer, depths) for name, layer in layers.items()]
    handles = [handle for watch in watches for handle in watch.handles]
    try:
        with depths:
            output = module(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    num_layers = depths.deepest_of(output)
    levels = {depths.of(tensor).level for tensor in _tensors(output)}
    called = all(len(watch.rounds) == 1 for watch in watches) and len(watches) == num_layers
    chain = called and not depths.mixed and not depths.counts_edges and levels == {num_layers}
    return Trace(
        output,
        num_layers,
        {watch.name: watch.inside for watch in watches},
        [watch.name for watch in watches if watch.outside],
        depths.own,
        {watch.name: watch.rounds[0] for watch in watches} if chain else None,
        {watch.name: watch.rounds[0] for watch in watches if watch.rounds}
        if all(len(watch.rounds) < 2 for watch in watches) and not depths.counts_edges
        else None,
    )


class _Watch:
    """Observes one layer."""

    def __init__(self, name: str, layer: MessagePassing, depths: _Depths) -> None:
        self.name, self.depths = name, depths
        self.inside, self.outside, self.rounds = 0, False, []
        self.starts: list[int] = []
        self.pending: list[int] = []
        self.handles = [
            layer.register_forward_pre_hook(self.before_forward, with_kwargs=True),
            layer.register_forward_hook(self.after_forward, always_call=True),
            layer.register_propagate_forward_pre_hook(self.before_propagate),
            layer.register_propagate_forward_hook(self.after_propagate),
        ]

    def before_forward(self, layer: Any, args: Any, kwargs: Any) -> None:
        self.starts.append(self.depths.deepest_of((args, kwargs)))
        self.depths.running.append(self.name)
        # In a chain the states come from the round before, and everything else belongs to edges.
        levels = [self.depths.of(tensor).level for tensor in _tensors((args, kwargs))]
        if [level for level in levels if level != _EDGES] != [self.starts[-1]]:
            self.depths.mixed = True

    def after_forward(self, layer: Any, args: Any, output: Any) -> None:
        if not self.starts:
            return
        self.depths.running.pop()
        depth, start = self.depths.deepest_of(output), self.starts.pop()
        self.inside = max(self.inside, depth - start)
        self.rounds.append(depth)
        for tensor in _tensors(output):
            self.depths.put(tensor, self.depths.of(tensor).depth, level=depth)

    def before_propagate(self, layer: Any, inputs: Any) -> None:
        if not self.starts:
            self.outside = True
        self.pending.append(self.depths.deepest_of(inputs) + 1)

    def after_propagate(self, layer: Any, inputs: Any, output: Any) -> None:
        depth = self.pending.pop()
        for tensor in _tensors(output):
            self.depths.put(tensor, depth, along=True, level=depth)


@dataclass(frozen=True)
class _Mark:
    """What is known of a storage."""

    depth: int
    along: bool = False  # whether edge_index had a part in it
    level: int | None = None  # the depth of states, `_EDGES`, or `None` for what belongs to neither nodes nor edges


class _Depths(TorchDispatchMode):
    """Marks storages, so that views and in-place writes share a depth."""

    def __init__(self) -> None:
        super().__init__()
        self.known: StorageDict[_Mark] = StorageDict()
        self.deepest = 0
        self.running: list[str] = []  # layers
        self.own: list[str] = []
        self.mixed = False  # whether an operation outside of layers was given states of several depths
        # Whether one adds up at the ends of edges, degrees for example: then all edges are needed in every round.
        self.counts_edges = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        inputs = list(_tensors((args, kwargs)))
        marks = [self.of(tensor) for tensor in inputs]
        if not self.running:
            operation = func._schema.name.split("::")[1].strip("_")
            if _sends(operation, inputs, marks):
                self.own.append(func._schema.name)
            self.counts_edges |= operation in (*_SCATTERS, "bincount") and _is_by_edges(inputs, marks)
        for tensor in _tensors(output):
            before = self.known.get(tensor)
            joined = [*marks, before] if before else marks
            levels = {mark.level for mark in joined if mark.level is not None}
            self.mixed |= len(levels) > 1 and not self.running
            level = max(levels, default=None)
            self.put(tensor, max((m.depth for m in joined), default=0), any(m.along for m in joined), level)
        return output

    def deepest_of(self, values: Any) -> int:
        return max((self.of(tensor).depth for tensor in _tensors(values)), default=0)

    def of(self, tensor: Tensor) -> _Mark:
        known = self.known.get(tensor)
        if known is None:
            # Its origin was not observed. Too deep costs time, not deep enough would be wrong.
            self.mixed = True
            known = self.put(tensor, self.deepest)
        return known

    def put(self, tensor: Tensor, depth: int, along: bool = False, level: int | None = None) -> _Mark:
        mark = _Mark(depth, along, level)
        self.known.put(tensor, mark)
        self.deepest = max(self.deepest, depth)
        return mark


def _sends(operation: str, inputs: list[Tensor], marks: list[_Mark]) -> bool:
    """Whether an operation sends states that a layer has computed along edges. Before the first layer no state depends
    on a color, and any operation is exact."""
    states = any(mark.depth > 0 for mark in marks)
    if operation in _SCATTERS:
        return states and _is_by_edges(inputs, marks)
    if operation in _PRODUCTS:
        sparse = any(tensor.layout != torch.strided for tensor in inputs)
        return states and (sparse or any(mark.along and mark.depth == 0 for mark in marks))
    return False


def _is_by_edges(inputs: list[Tensor], marks: list[_Mark]) -> bool:
    """Whether an operation is given the ends of edges. A mask picks rows and moves nothing."""
    return any(
        mark.along and not tensor.is_floating_point() and tensor.dtype != torch.bool
        for tensor, mark in zip(inputs, marks, strict=True)
    )


def _tensors(values: Any) -> Iterator[Tensor]:
    for leaf in tree_leaves(values):
        if isinstance(leaf, (Data, HeteroData)):
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


@contextmanager
def trial(module: T, given: Any) -> Iterator[T]:
    """A copy of a module, or of a tuple of things with a module, to try out on what is given: in evaluation mode,
    without gradients, and with the random numbers of the block forgotten. What cannot be copied is lent itself."""
    tensors = list(_tensors(given))
    device = tensors[0].device if tensors else torch.device("cpu")
    try:
        with torch.inference_mode(False):  # inside of it, weights without a width are not converted
            copied = copy.deepcopy(module)
    except RuntimeError:  # it keeps a tensor of its last training step
        copied = module
    modules = [part for part in (copied if isinstance(copied, tuple) else (copied,)) if isinstance(part, nn.Module)]
    with side_effect_free(nn.ModuleList(modules), device):
        yield copied


@contextmanager
def side_effect_free(module: nn.Module, device: torch.device) -> Iterator[None]:
    """Within the block `module` is in evaluation mode and nothing is recorded for a backward pass; afterwards its modes
    and the random number generators are as before, and autocast has not cached any weights of the block.

    Example:
        >>> net = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()).train()
        >>> with side_effect_free(net, torch.device("cpu")):
        ...     _ = net(torch.randn(3, 2))
        >>> net.training, net[0].running_mean.tolist()
        (True, [0.0, 0.0])
    """
    modes = [(child, child.training) for child in module.modules()]
    accelerated = [] if device.type == "cpu" else [device]
    caches = torch.is_autocast_cache_enabled()
    with (
        torch.no_grad(),
        torch.random.fork_rng(accelerated, device_type=device.type if accelerated else "cuda"),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="None of the inputs have requires_grad")  # of checkpoints
        module.eval()
        torch.set_autocast_cache_enabled(False)
        try:
            yield
        finally:
            torch.set_autocast_cache_enabled(caches)
            for child, training in modes:
                child.training = training
