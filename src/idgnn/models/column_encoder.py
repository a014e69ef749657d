"""The columns of a table as states, by the encoders of pytorch-frame (the extra `relational`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from idgnn.graphs.relational.columns import ColumnCode
from idgnn.graphs.relational.frames import column_names, column_statistics

if TYPE_CHECKING:
    from torch_frame import TensorFrame


class ColumnEncoder(nn.Module):
    """The sum over columns of `LinearEncoder`, `EmbeddingEncoder` or `TimestampEncoder`: `[rows, channels]`.

    Args:
        codes: The columns, as dictionaries (:meth:`ColumnCode.as_dict`).
        channels: The width.
    """

    def __init__(self, codes: Sequence[Mapping[str, Any]], channels: int) -> None:
        super().__init__()
        columns = tuple(map(ColumnCode.from_dict, codes))
        statistics, names = column_statistics(columns), column_names(columns)
        import torch_frame
        from torch_frame.nn.encoder import (
            EmbeddingEncoder,
            LinearEncoder,
            StypeWiseFeatureEncoder,
            TimestampEncoder,
        )

        encoders = {
            # Without a strategy a missing number counts as 0, but its gradient is NaN.
            torch_frame.numerical: LinearEncoder(na_strategy=torch_frame.NAStrategy.MEAN),
            torch_frame.categorical: EmbeddingEncoder(),
            torch_frame.timestamp: TimestampEncoder(),
        }
        self.encoder = StypeWiseFeatureEncoder(channels, statistics, names, encoders)  # pyright: ignore

    def forward(self, frame: TensorFrame) -> Tensor:
        """`[rows, channels]`."""
        return self.encoder(frame)[0].sum(1)
