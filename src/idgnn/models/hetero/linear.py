"""One linear map for each of several groups of rows that lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import linear


def grouped_linear(x: Tensor, weights: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """`x W^T` with the weights `[out, in]` of its group for each row: `[rows, in]` to `[rows, out]`.

    The results are written side by side: the same by `split` and `cat` copies all rows once more, in both directions.

    Example:
        >>> x = torch.tensor([[1.0], [2.0], [3.0]])
        >>> grouped_linear(x, [torch.tensor([[10.0]]), torch.tensor([[1.0]])], [1, 2]).flatten().tolist()
        [10.0, 2.0, 3.0]
    """
    if not weights:
        return x
    if torch.is_autocast_enabled(x.device.type):  # which chooses the precision of each product
        return grouped_linear_plain(x, weights, sizes)
    return _GroupedLinear.apply(x, tuple(sizes), *weights)  # pyright: ignore[reportReturnType]


def grouped_linear_plain(x: Tensor, weights: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """:func:`grouped_linear`, group by group."""
    return torch.cat([linear(part, weight) for part, weight in zip(x.split(list(sizes)), weights, strict=True)])


class _GroupedLinear(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...], *weights: Tensor) -> Tensor:
        ctx.sizes = sizes
        ctx.save_for_backward(x, *weights)
        out = x.new_empty(x.size(0), weights[0].size(0))
        for part, weight, result in zip(x.split(sizes), weights, out.split(sizes), strict=True):
            torch.mm(part, weight.t(), out=result)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, *weights = ctx.saved_tensors
        grad = grads[0].contiguous()
        if torch.is_grad_enabled():  # to differentiate twice
            with torch.enable_grad():
                out = grouped_linear_plain(x, weights, ctx.sizes)
                wanted = [each for each in (x, *weights) if each.requires_grad]
                found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
            grad_x, *of_weights = (next(found) if each.requires_grad else None for each in (x, *weights))
            return grad_x, None, *of_weights
        parts = list(zip(x.split(ctx.sizes), weights, grad.split(ctx.sizes), strict=True))
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.empty_like(x)
            for (_, weight, part), result in zip(parts, grad_x.split(ctx.sizes), strict=True):
                torch.mm(part, weight, out=result)
        return grad_x, None, *(part.t() @ rows for rows, _, part in parts)
