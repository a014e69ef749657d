"""Where embeddings go: into one array, with a bar that shows how far they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.checks import check_graph
from idgnn.identity.queries import as_queries
from idgnn.models.embedding.embed import embed_by_chunks

if TYPE_CHECKING:
    from idgnn.models.idgnn import IDGNN


def embed(
    model: IDGNN,
    data: Data,
    roots: Tensor | None,
    memory: int | str | None,
    out: Tensor | np.ndarray | None,
    progress: bool,
) -> Tensor:
    """:meth:`idgnn.IDGNN.embed`."""
    shape = embedding_shape(model, data, roots)
    if out is None:
        into = torch.empty(shape, dtype=model.lin_in.weight.dtype)
    else:
        into = torch.from_numpy(out) if isinstance(out, np.ndarray) else out
        if not isinstance(into, Tensor) or into.shape != shape:
            found = f"has shape {list(into.shape)}" if isinstance(into, Tensor) else f"is a {type(into).__name__}"
            raise ValueError(f"out {found}, expected a tensor or numpy array of shape {list(shape)}: a row per root.")
    with Bar(shape[0], progress) as bar:

        def finished(positions: Tensor, values: Tensor, done: int) -> None:
            into[positions.to(into.device)] = values.to(into)
            bar.advance(positions.numel())

        embed_by_chunks(model, data, roots, memory, finished)
    return into


def embedding_shape(model: IDGNN, data: Data, roots: Tensor | None) -> torch.Size:
    """The number of roots, and the width of what is returned for each."""
    queries = as_queries(roots, check_graph(data), torch.device("cpu"))
    width = model.settings["hidden_channels"] if model.out_channels is None else model.out_channels
    return torch.Size([queries.node.numel(), width if queries.own else model.pair_channels])


class Bar:
    """A bar that shows how many embeddings are done, if one is wanted."""

    def __init__(self, total: int, wanted: bool) -> None:
        self.bar = None
        if wanted:
            from rich.progress import Progress

            self.bar = Progress(transient=True)
            self.task = self.bar.add_task("embedding", total=total)

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
