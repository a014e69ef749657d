"""The coloured rows of a graph, found once and used by every layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ColouredRows:
    """The coloured rows of a graph."""

    index: Tensor  # [num_coloured]
    total: int

    @staticmethod
    def of(coloured: Tensor) -> ColouredRows | None:
        """The rows that a mask names, `None` if it names none."""
        if not isinstance(coloured, Tensor) or coloured.dim() != 1 or coloured.dtype != torch.bool:
            given = f"{coloured.dtype} {list(coloured.shape)}" if isinstance(coloured, Tensor) else repr(coloured)
            raise ValueError(f"coloured is {given}, expected a bool tensor with one entry per row: graph.coloured.")
        index = coloured.nonzero().flatten()
        return ColouredRows(index, coloured.numel()) if index.numel() else None

    def replace(self, plain: Tensor, coloured: Callable[[Tensor], Tensor], dim: int) -> Tensor:
        """`plain` with its coloured rows replaced by `coloured(their indices)`. Costs a copy of `plain`."""
        if plain.size(dim) != self.total:
            raise ValueError(
                f"a layer was given {plain.size(dim)} rows, but the colour is known for {self.total}. Layers inside a "
                "model have to work on all rows of its graph; `coloured` needs one entry per row of x."
            )
        return plain.index_copy(dim, self.index, coloured(self.index))
