"""Training steps and forward passes on batches that differ from step to step, replayed as CUDA graphs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.idgnn import IDGNN
from idgnn.models.predictor import Predictor
from idgnn.training.batches import Batches, BatchSource, GraphBatch, PreparesBatches
from idgnn.training.cuda_graphs import Inputs, NotRecordedWarning
from idgnn.training.packing import pack
from idgnn.training.padded_batches import PaddedBatches, PaddedSize
from idgnn.training.padded_roots import PaddedRoots
from idgnn.training.processes import Processes
from idgnn.training.root_batches import RootBatches
from idgnn.training.run_settings import TrainOptions

Kind = Literal["step", "frozen step", "statistics", "predict"]
Function = Callable[[GraphBatch], Tensor]

_MOST_GRAPHS = 64  # CUDA graphs at a time: each takes a few MB


class GraphCache(Protocol):
    """Where functions are recorded: :class:`idgnn.training.cuda_graphs.CudaGraphCache`."""

    def run(
        self, key: Hashable, make: Callable[[], Inputs], function: Callable[[Inputs], Tensor], kind: Hashable = None
    ) -> Tensor:
        """As :meth:`idgnn.training.cuda_graphs.CudaGraphCache.run`."""
        ...

    def clear(self) -> None:
        """Drops all graphs."""
        ...


class Recorder:
    """Runs functions of batches as CUDA graphs.

    Batches are padded to a few sizes (:class:`PaddedBatches`), and one graph serves all batches of a size: it cuts the
    batch out of the dataset, from the list of its graphs, and runs the function on it. A batch of roots is prepared on
    the CPU and written over the one before (:class:`PaddedRoots`). Networks that do not know padding (those of the
    experiments) have a graph for each batch, until graphs are assigned to new batches.

    Args:
        cache: Where functions are recorded.
        padding: Whether the network knows padding.
        compiled: Whether the network is compiled: it may be compiled again for any size, and not while it is recorded.
    """

    def __init__(self, cache: GraphCache, padding: bool = True, compiled: bool = False) -> None:
        self.cache, self.padding, self.compiled = cache, padding, compiled
        self._padded: list[tuple[Batches, PaddedBatches]] = []
        self._roots: PaddedRoots | None = None
        self._keys = set[Hashable]()
        self._said = False  # whether it was said that batches cannot be recorded

    def run(self, kind: Kind, batches: BatchSource, graphs: Tensor, batch_size: int, function: Function) -> Tensor:
        """The function on the batch of these graphs, ids on the CPU. The next call writes over the result.

        Args:
            kind: Which function; it is the same for all batches.
            batches: Where batches are cut out.
            graphs: At most `batch_size` ids.
            batch_size: That of all calls since :meth:`clear`.
            function: What is done.
        """
        if not self.padding:
            # Until the next assignment each graph is in one batch only, so the first one identifies the batch.
            if kind in ("statistics", "predict"):
                return function(batches.cut(graphs))
            return self.cache.run((kind, int(graphs[0])), lambda: batches.cut(graphs), function)
        if not isinstance(batches, Batches) or batches.whole is None:
            if not self._said:
                _warn("for graphs that fit into memory together, which these do not")
                self._said = True
            return function(batches.cut(graphs))
        number = self._number_of(batches, batch_size)
        padded = self._padded[number][1]
        size = padded.size(graphs)
        if size is None:
            return function(batches.cut(graphs))
        padded.load(graphs)
        return self._replay(kind, number, padded, size, function)

    def run_roots(self, kind: Kind, batch: GraphBatch, device: torch.device, function: Function) -> Tensor:
        """The function on a batch of roots, which lies on the CPU. The next call writes over the result."""
        if self._roots is None:
            self._roots = PaddedRoots(device)
        size = self._roots.load(batch)
        if self._roots.renewed:
            self._forget()
        if size is None:
            return function(pack(batch).unpack(device))
        assert self._roots.padded is not None
        return self._replay(kind, -1, self._roots.padded, size, function)

    def follow(self, before: BatchSource | RootBatches, batches: BatchSource | RootBatches) -> None:
        """Takes over what was recorded for the batches of other queries, which are not used any more."""
        for number, (known, padded) in enumerate(self._padded):
            if known is before and isinstance(batches, Batches) and batches.whole and padded.follow(batches.whole):
                self._padded[number] = (batches, padded)
                return
        if not isinstance(batches, RootBatches):
            self.clear()

    def reassigned(self) -> None:
        """Graphs are in other batches from here on."""
        if not self.padding:
            self.cache.clear()

    def clear(self) -> None:
        """Drops all that was recorded."""
        self._forget()
        self._padded.clear()
        self._roots = None

    def _replay(self, kind: Kind, number: int, padded: PaddedBatches, size: PaddedSize, function: Function) -> Tensor:
        key = (kind, number, size)
        if key not in self._keys and len(self._keys) >= _MOST_GRAPHS:
            self._forget()
        self._keys.add(key)
        padded.prepare(size)
        return self.cache.run(
            key, lambda: padded, lambda given: function(given.cut(size)), key if self.compiled else kind
        )

    def _forget(self) -> None:
        self.cache.clear()
        self._keys.clear()

    def _number_of(self, batches: Batches, batch_size: int) -> int:
        for number, (known, _) in enumerate(self._padded):
            if known is batches:
                return number
        assert batches.whole is not None
        of_graphs = batches.part.level == "graph"
        self._padded.append((batches, PaddedBatches(batches.whole, batches.target, batch_size, of_graphs)))
        return len(self._padded) - 1


def knows_padding(model: Any) -> bool:
    """Whether rows of padding change nothing in a network: so it is for an IDGNN of named layers with our heads, or in
    a network that says so itself."""
    if type(model) is Predictor:
        return type(model.encoder) is IDGNN and model.encoder.operator is not None
    return getattr(model, "knows_padding", False)


def is_recorded(options: TrainOptions, model: Any, processes: Processes, device: torch.device) -> bool:
    """Whether steps are recorded. If they are asked for and cannot be, says why: an error if `cuda_graphs` is `"on"`,
    a warning if it is `"auto"`."""
    if options.cuda_graphs == "off" or (options.cuda_graphs == "auto" and device.type != "cuda"):
        return False
    reason = _why_not(options, model, processes, device)
    if reason is None:
        return True
    if options.cuda_graphs == "on":
        raise ValueError(f"cuda_graphs is {reason}. Leave it out.")
    _warn(reason)
    return False


def _warn(reason: str) -> None:
    warnings.warn(
        f"training is slower than it could be: recording steps (cuda_graphs) is {reason}. The results are the same. "
        "To train without this message, set cuda_graphs to off.",
        NotRecordedWarning,
        stacklevel=4,
    )


def _why_not(options: TrainOptions, model: Any, processes: Processes, device: torch.device) -> str | None:
    if processes.size > 1:
        return f"for one process, but there are {processes.size}"
    if isinstance(model, PreparesBatches):
        return f"for predictors, but {type(model).__name__} prepares its own batches of graphs"
    if isinstance(model.encoder, IdentityAwareModel):
        return (
            "for the named layers (conv='gcn', ...): a model of your own looks at values in each call, which no CUDA "
            "graph can hold"
        )
    if not knows_padding(model) and (options.reshuffle_every == 1 or options.query_batch_size is not None):
        return (
            f"for networks that know padding, which {type(model).__name__} does not, or for batches that stay the same "
            "for some epochs (reshuffle_every)"
        )
    return None if device.type == "cuda" else f"for CUDA, but the device is {device}"
