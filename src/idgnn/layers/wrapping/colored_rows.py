"""The colored rows of a graph, found once and used by every layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ColoredRows:
    """The colored rows of a graph."""

    index: Tensor  # [num_colored]
    total: int

    @staticmethod
    def of(colored: Tensor) -> ColoredRows | None:
        """The rows that a mask names, `None` if it names none."""
        if not isinstance(colored, Tensor) or colored.dim() != 1 or colored.dtype != torch.bool:
            given = f"{colored.dtype} {list(colored.shape)}" if isinstance(colored, Tensor) else repr(colored)
            raise ValueError(f"colored is {given}, expected a bool tensor with one entry per row: graph.colored.")
        index = colored.nonzero().flatten()
        return ColoredRows(index, colored.numel()) if index.numel() else None

    def replace(self, plain: Tensor, colored: Callable[[Tensor], Tensor], dim: int) -> Tensor:
        """`plain` with its colored rows replaced by `colored(their indices)`. Costs a copy of `plain`."""
        if plain.size(dim) != self.total:
            raise ValueError(
                f"a layer was given {plain.size(dim)} rows, but the color is known for {self.total}. Layers inside a "
                "model have to work on all rows of its graph; `colored` needs one entry per row of x."
            )
        return plain.index_copy(dim, self.index, colored(self.index))
