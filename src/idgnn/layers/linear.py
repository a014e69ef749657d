"""Linear maps, with weights of their own for each color of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear as torch_linear

from idgnn.layers.branches import is_recorded, side_by_side

Call = Callable[[], object]

_ALIGNED = 4  # channels: 16 bytes of float32
_MANY = 1024  # rows


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r""":math:`\mathbf{W} \mathbf{x}_s + \mathbf{b}`, as PyTorch has it, but a quarter faster on a CPU where the number
    of channels is no multiple of 4 (182 channels, 20,775 rows: 19 in place of 25 ms)."""
    if _is_left_to_pytorch(x) or not _has_own_way(x, weight):
        return torch_linear(x, weight, bias)
    parameters = (weight,) if bias is None else (weight, bias)
    return _Linear.apply(x, (x.size(0),), len(parameters), *parameters)  # type: ignore[return-value]


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
    if _is_left_to_pytorch(x):
        return linear_by_color_plain(x, sizes, weights, biases)
    used = [i for i, size in enumerate(sizes) if size] or [0]
    if len(used) == 1 and not _has_own_way(x, weights[0]):
        return linear_by_color_plain(x, sizes, weights, biases)
    given = [weights[i] for i in used] + ([] if biases is None else [biases[i] for i in used])
    return _Linear.apply(x, tuple(sizes[i] for i in used), len(given) // len(used), *given)  # type: ignore[return-value]


def linear_and_update(
    x: Tensor,
    sizes: Sequence[int],
    weights: Sequence[Tensor],
    updates: Sequence[Tensor],
    biases: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`linear_by_color`, and a second map of the rows of the last colors: `[rows of these, channels]`.

    Args:
        x: `[rows, in_channels]`, color by color.
        sizes: How many rows have each color; together all rows.
        weights: Of each color `[channels, in_channels]`.
        updates: The weights of the second map, of the last colors `[channels, in_channels]`. They have some rows.
        biases: Of each color `[channels]`.

    The gradient of `x` is made once, and nothing is added to it afterwards.

    Example:
        >>> linear_and_update(torch.ones(3, 2), [1, 2], [torch.eye(2), 5 * torch.eye(2)], [2 * torch.eye(2)])[1]
        tensor([[2., 2.],
                [2., 2.]])
    """
    if _is_left_to_pytorch(x):
        colors = list(sizes[-len(updates) :])
        update = linear_by_color_plain(x[x.size(0) - sum(colors) :], colors, updates)
        return linear_by_color_plain(x, sizes, weights, biases), update
    used = [i for i, size in enumerate(sizes) if size]
    first = len(sizes) - len(updates)  # of the colors with a second map
    given = [weights[i] for i in used] + ([] if biases is None else [biases[i] for i in used])
    given += [updates[i - first] for i in used if i >= first]
    kinds = 1 if biases is None else 2
    return _Linear.apply(x, tuple(sizes[i] for i in used), kinds, *given)  # type: ignore[return-value]


def linear_by_color_plain(
    x: Tensor, sizes: Sequence[int], weights: Sequence[Tensor], biases: Sequence[Tensor] | None = None
) -> Tensor:
    """:func:`linear_by_color`, color by color."""
    used = [i for i, size in enumerate(sizes) if size] or [0]
    given = [None] * len(weights) if biases is None else biases
    if len(used) == 1:
        return torch_linear(x, weights[used[0]], given[used[0]])
    parts = zip(x.split(list(sizes)), weights, given, strict=True)
    return torch.cat([torch_linear(rows, weight, bias) for rows, weight, bias in parts if rows.size(0)])


class _Linear(torch.autograd.Function):
    """:func:`linear_by_color` where every color has rows, and :func:`linear_and_update` if there are parameters left.

    Products are independent of one another, so a recorded step has them side by side: that of the first color, those of
    the others, those of updates; and of gradients, those of rows, of the weights of the first color, of all others.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...], kinds: int, *parameters: Tensor) -> Any:  # type: ignore[override]
        number = len(sizes)
        weights, updates = parameters[:number], parameters[number * kinds :]
        biases = parameters[number : number * kinds] or (None,) * number
        ctx.sizes, ctx.kinds = sizes, kinds
        ctx.save_for_backward(x, *weights, *updates)
        out, rows = x.new_empty(x.size(0), weights[0].size(0)), x.split(sizes)
        first, *others = (
            partial(_multiply, each, weight.t(), result, bias)
            for each, weight, result, bias in zip(rows, weights, out.split(sizes), biases, strict=True)
        )
        if not updates:
            side_by_side(x.device, [first], others)
            return out
        behind = sizes[number - len(updates) :]
        update = x.new_empty(sum(behind), updates[0].size(0))
        second = [
            partial(_multiply, each, weight.t(), result)
            for each, weight, result in zip(rows[number - len(updates) :], updates, update.split(behind), strict=True)
        ]
        side_by_side(x.device, [first], others, second)
        return out, update

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *more: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, *weights = ctx.saved_tensors
        sizes, needed = ctx.sizes, ctx.needs_input_grad[3:]
        number, kinds = len(sizes), ctx.kinds
        later = number - (len(weights) - number)  # the first color with an update
        rows, grads = list(x.split(sizes)), list(grad.split(sizes))
        rows += rows[later:]
        grads += more[0].split(sizes[later:]) if more else ()
        if torch.is_grad_enabled():  # then it is differentiated again
            of_weights = [each.t() @ part for each, part in zip(grads, rows, strict=True)]
            of_biases = [each.sum(0) for each in grads[:number]] if kinds == 2 else []
            of_rows = [each @ weight for each, weight in zip(grads, weights, strict=True)]
            for i, part in enumerate(of_rows[number:], later):
                of_rows[i] = of_rows[i] + part
            return torch.cat(of_rows[:number]), None, None, *of_weights[:number], *of_biases, *of_weights[number:]
        found: list[Tensor | None] = [None] * len(needed)
        first, others, to_rows = list[Call](), list[Call](), list[Call]()
        for i, (each, part) in enumerate(zip(grads, rows, strict=True)):
            place = i if i < number else i + number * (kinds - 1)
            if needed[place]:
                found[place] = result = x.new_empty(each.size(1), x.size(1))
                (others if i else first).append(partial(torch.mm, each.t(), part, out=result))
            if kinds == 2 and i < number and needed[number + i]:
                found[number + i] = result = x.new_empty(each.size(1))
                (others if i else first).append(_sum_of_rows(each, result))
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = torch.empty_like(x, memory_format=torch.contiguous_format)
            results = list(of_x.split(sizes))
            for i, (each, weight) in enumerate(zip(grads, weights, strict=True)):
                result = results[i] if i < number else results[i - number + later]
                to_rows.append(partial(_multiply, each, weight, result, add=i >= number))
        side_by_side(x.device, to_rows, first, others)
        return of_x, None, None, *found


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """`x + b` for rows `[rows, channels]`."""
    if _is_left_to_pytorch(x) or not is_recorded(x.device):
        return x + bias
    return _AddBias.apply(x, bias)  # type: ignore[return-value]


class _AddBias(torch.autograd.Function):
    """:func:`add_bias` with the gradient of :class:`_Linear`, for recorded steps: launched one by one, PyTorch's own
    needs no function in Python."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:  # type: ignore[override]
        return x + bias

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:  # type: ignore[override]
        if not ctx.needs_input_grad[1] or torch.is_grad_enabled():
            return grad, grad.sum(0) if ctx.needs_input_grad[1] else None
        result = grad.new_empty(grad.size(1))
        _sum_of_rows(grad, result)()
        return grad, result


def _sum_of_rows(x: Tensor, out: Tensor) -> Call:
    """Writes the sum of all rows. On a GPU as a product: of 24,000 rows that takes 10 us, PyTorch's sum 28."""
    if x.device.type != "cuda":
        return partial(torch.sum, x, 0, out=out)
    return partial(torch.mm, x.new_ones(1, x.size(0)), x, out=out.unsqueeze(0))


def _multiply(a: Tensor, b: Tensor, out: Tensor, bias: Tensor | None = None, add: bool = False) -> None:
    """Writes `a @ b`, and the bias more, to `out`, or adds it to what is there."""
    result = out
    if _unaligned(a, b.size(1)):  # faster to rows that begin at multiples of 16 bytes, and copied
        result = out.new_empty(out.size(0), -(-out.size(1) // _ALIGNED) * _ALIGNED)[:, : out.size(1)]
    if add and result is out:
        result.addmm_(a, b)
    elif bias is None:
        torch.mm(a, b, out=result)
    else:
        torch.addmm(bias, a, b, out=result)
    if result is not out:
        if add:
            out.add_(result)
        else:
            out.copy_(result)


def _is_left_to_pytorch(x: Tensor) -> bool:
    """Whether `torch.compile` traces this, there are only shapes, or autocast chooses the precision of each product."""
    return torch.compiler.is_compiling() or x.is_meta or torch.is_autocast_enabled(x.device.type)


def _has_own_way(x: Tensor, weight: Tensor) -> bool:
    """Whether products of one color are faster by :class:`_Linear` than by PyTorch."""
    return is_recorded(x.device) or _unaligned(x, weight.size(0)) or _unaligned(x, x.size(1))


def _unaligned(x: Tensor, channels: int) -> bool:
    return x.device.type == "cpu" and channels % _ALIGNED != 0 and x.size(0) >= _MANY and x.dtype == torch.float32
