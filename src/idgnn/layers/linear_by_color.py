"""One linear map for plain rows and others for colored rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear


def linear_by_color(
    x: Tensor, sizes: Sequence[int], weights: Sequence[Tensor], biases: Sequence[Tensor] | None = None
) -> Tensor:
    r""":math:`\mathbf{W}_c \mathbf{x}_s + \mathbf{b}_c` with the weights of the color :math:`c` of each row.

    Args:
        x: `[rows, in_channels]`, color by color.
        sizes: How many rows have each color; together all rows.
        weights: Of each color `[channels, in_channels]`.
        biases: Of each color `[channels]`.

    Results and gradients of all colors are written where they belong: splitting rows and putting them together again
    would be a pass over them each time.

    Example:
        >>> linear_by_color(torch.ones(3, 2), [1, 2], [torch.eye(2), 5 * torch.eye(2)])
        tensor([[1., 1.],
                [5., 5.],
                [5., 5.]])
    """
    used = [i for i, size in enumerate(sizes) if size]
    if len(used) < 2:
        i = used[0] if used else 0
        return linear(x, weights[i], None if biases is None else biases[i])
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(x.device.type):
        return linear_by_color_plain(x, sizes, weights, biases)
    return _LinearByColor.apply(x, tuple(sizes), *weights, *(biases or ()))  # type: ignore[return-value]


def linear_by_color_plain(
    x: Tensor, sizes: Sequence[int], weights: Sequence[Tensor], biases: Sequence[Tensor] | None = None
) -> Tensor:
    """:func:`linear_by_color`, color by color."""
    given = [None] * len(weights) if biases is None else biases
    parts = zip(x.split(list(sizes)), weights, given, strict=True)
    return torch.cat([linear(rows, weight, bias) for rows, weight, bias in parts])


class _LinearByColor(torch.autograd.Function):
    """:func:`linear_by_color`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...], *parameters: Tensor) -> Tensor:  # type: ignore[override]
        ctx.sizes = sizes
        weights, biases = parameters[: len(sizes)], parameters[len(sizes) :]
        ctx.save_for_backward(x, *weights)
        out = x.new_empty(x.size(0), weights[0].size(0))
        for i, (rows, result) in enumerate(zip(x.split(sizes), out.split(sizes), strict=True)):
            if biases:
                torch.addmm(biases[i], rows, weights[i].t(), out=result)
            else:
                torch.mm(rows, weights[i].t(), out=result)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, *weights = ctx.saved_tensors
        number, needed = len(weights), ctx.needs_input_grad
        grads = grad.split(ctx.sizes)
        of_weights = [
            each.t() @ rows if needed[2 + i] else None
            for i, (each, rows) in enumerate(zip(grads, x.split(ctx.sizes), strict=True))
        ]
        of_biases = [each.sum(0) if need else None for each, need in zip(grads, needed[2 + number :], strict=False)]
        of_x = None
        if needed[0] and torch.is_grad_enabled():  # then it is differentiated again
            of_x = torch.cat([each @ weight for each, weight in zip(grads, weights, strict=True)])
        elif needed[0]:
            of_x = torch.empty_like(x)
            for each, weight, result in zip(grads, weights, of_x.split(ctx.sizes), strict=True):
                torch.mm(each, weight, out=result)
        return of_x, None, *of_weights, *of_biases
