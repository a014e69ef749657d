"""The embedding of a query with two colors, from the states that are pooled into it."""

from __future__ import annotations

from torch import Tensor

from idgnn.choices import Pool
from idgnn.identity.schedule import Messages
from idgnn.layers.aggregation import gather_max, gather_sum


def pool_states(h: Tensor, pool: Messages, kind: Pool) -> Tensor:
    """The sum, mean or maximum of the states `[states, ...]` that each query receives: `[queries, ...]`.

    Example:
        >>> import torch
        >>> from idgnn.identity.schedule import group_messages
        >>> pool = group_messages(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), torch.tensor([]), 2, 2)
        >>> pool_states(torch.tensor([[1.0], [3.0]]), pool, "mean").tolist()
        [[2.0], [3.0]]
    """
    rows = h.flatten(1) if h.dim() > 1 else h.unsqueeze(1)
    if kind == "max":
        low = rows.detach().amin() if rows.numel() else 0.0  # maxima are taken of numbers that are not negative
        out = gather_max(rows - low, pool) + low
    else:
        out = gather_sum(rows, pool)
        out = out / pool.ptr.diff().clamp(min=1).unsqueeze(-1) if kind == "mean" else out  # padding has none
    return out.view(-1, *h.shape[1:])
