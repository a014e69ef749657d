"""The embedding of a query with two colors, from the states that are pooled into it."""

from __future__ import annotations

from torch import Tensor

from idgnn.choices import Pool
from idgnn.identity.schedule import Messages
from idgnn.layers.aggregation import gather_sum


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
        sent, index = rows.index_select(0, pool.source), pool.target.unsqueeze(-1)
        out = rows.new_zeros(pool.ptr.numel() - 1, rows.size(1))
        out = out.scatter_reduce(0, index.expand_as(sent), sent, "amax", include_self=False)
    else:
        out = gather_sum(rows, pool)
        out = out / pool.ptr.diff().clamp(min=1).unsqueeze(-1) if kind == "mean" else out  # padding has none
    return out.view(out.size(0), *h.shape[1:])
