"""Where embeddings go: into one array, with a bar that shows how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.checks import check_graph
from idgnn.identity.queries import as_queries, as_tensor
from idgnn.models.embedding.embed import embed_by_chunks

if TYPE_CHECKING:
    from idgnn.models.idgnn import IDGNN


def embed(
    model: IDGNN,
    data: Data,
    roots: Tensor | Sequence[int] | np.ndarray | None,
    memory: float | str | None,
    out: Tensor | np.ndarray | None,
    progress: bool,
) -> Tensor:
    """:meth:`idgnn.IDGNN.embed`."""
    roots = as_tensor(roots, "roots")
    shape = embedding_shape(model, data, roots)
    into = torch.empty(shape, dtype=model.lin_in.weight.dtype) if out is None else _writable(out, shape)
    with Bar(shape[0], progress) as bar:

        def finished(positions: Tensor, values: Tensor, done: int) -> None:
            into[positions.to(into.device)] = values.to(into)
            bar.advance(positions.numel())

        embed_by_chunks(model, data, roots, memory, finished)
    return into


def _writable(out: Tensor | np.ndarray, shape: torch.Size) -> Tensor:
    """The array as a tensor on the same memory, if embeddings can be written to it."""
    expected = f"expected a tensor or numpy array of numbers like float32, of shape {list(shape)}: a row per root."
    if not isinstance(out, Tensor | np.ndarray):
        raise ValueError(f"out is a {type(out).__name__}, {expected}")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError('out is read-only, expected an array that can be written to: a memmap with mode "r+" or "w+".')
    into = torch.from_numpy(out) if isinstance(out, np.ndarray) else out
    if into.shape != shape or not into.is_floating_point():
        raise ValueError(f"out has shape {list(into.shape)} and dtype {into.dtype}, {expected}")
    if any(step == 0 and size > 1 for step, size in zip(into.stride(), into.shape, strict=True)):
        raise ValueError("out is expanded: several of its entries are one place in memory. Pass out.contiguous().")
    return into


def embedding_shape(model: IDGNN, data: Data, roots: Tensor | None) -> torch.Size:
    """The number of roots, and the width of what is returned for each."""
    queries = as_queries(roots, check_graph(data), torch.device("cpu"))
    width = model.settings["hidden_channels"] if model.out_channels is None else model.out_channels
    return torch.Size([queries.node.numel(), width if queries.own else model.pair_channels])


class Bar:
    """A bar that shows how much is done, if one is wanted."""

    def __init__(self, total: int, wanted: bool, title: str = "embedding") -> None:
        self.bar = None
        if wanted:
            from rich.progress import Progress

            self.bar = Progress(transient=True)
            self.task = self.bar.add_task(title, total=total)

    def __enter__(self) -> Bar:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, number: int) -> None:
        """So many more are done."""
        if self.bar is not None:
            self.bar.advance(self.task, number)
