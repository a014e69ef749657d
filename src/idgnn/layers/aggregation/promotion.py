"""Tensors of one type."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor


def alike(x: Tensor, *others: Tensor | None) -> tuple[Tensor, *tuple[Tensor | None, ...]]:
    """All in the smallest type that holds each of them."""
    dtype = reduce(torch.promote_types, (each.dtype for each in others if each is not None), x.dtype)
    return x.to(dtype), *(None if each is None else each.to(dtype) for each in others)
