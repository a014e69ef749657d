r"""BatchNorm and ReLU in one pass, over the rows that are no padding, and their gradients.

Statistics are taken tile by tile, `[ROWS, CHANNELS]` each, and the tiles are combined by a second, short kernel:

.. math:: \mu = \frac{1}{n} \sum_t n_t \mu_t, \qquad
    n \sigma^2 = \sum_t \big(s_t + n_t (\mu_t - \mu)^2\big)

with the number of real rows, the mean and the sum of squares around it of each tile. No difference of large numbers is
taken, and the same input gives the same bits.
"""

from __future__ import annotations

import torch
import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor, nn

from idgnn.layers.aggregation.kernels.sums import jit, part_type, total_type

ROWS, CHANNELS = 128, 32  # of a tile
TILES = 64  # that are combined at once


@jit("x real first second count rows channels")
def _moments_kernel(
    x, real, first, second, count, rows, channels, TOTAL: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr
):
    tile = tl.program_id(0).to(tl.int64)
    row, column = tile * ROWS + tl.arange(0, ROWS), tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    counts = tl.load(real + row, mask=row < rows, other=0).to(TOTAL)
    here = (row < rows)[:, None] & (column < channels)[None, :]
    value = tl.load(x + row[:, None] * channels + column[None, :], mask=here, other=0).to(TOTAL)
    number = tl.sum(counts, axis=0)
    mean = tl.sum(value * counts[:, None], axis=0) / tl.maximum(number, 1.0)
    away = (value - mean[None, :]) * counts[:, None]
    tl.store(first + tile * channels + column, mean, mask=column < channels)
    tl.store(second + tile * channels + column, tl.sum(away * away, axis=0), mask=column < channels)
    tl.store(count + tile, number)


@jit("first second count mean scale running_mean running_var tracked channels tiles")
def _statistics_kernel(
    first,
    second,
    count,
    mean,
    scale,
    running_mean,
    running_var,
    tracked,
    channels,
    tiles,
    EPS: tl.constexpr,
    MOMENTUM: tl.constexpr,
    CUMULATIVE: tl.constexpr,
    TOTAL: tl.constexpr,
    TILES: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    column = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    inside = column < channels
    number = tl.zeros([TILES], dtype=TOTAL)
    total = tl.zeros([TILES, CHANNELS], dtype=TOTAL)
    for begin in range(0, tiles, TILES):
        tile = begin + tl.arange(0, TILES)
        here = (tile < tiles)[:, None] & inside[None, :]
        some = tl.load(count + tile, mask=tile < tiles, other=0)
        number += some
        total += some[:, None] * tl.load(first + tile[:, None] * channels + column[None, :], mask=here, other=0)
    rows = tl.sum(number, axis=0)
    center = tl.sum(total, axis=0) / rows
    squares = tl.zeros([TILES, CHANNELS], dtype=TOTAL)
    for begin in range(0, tiles, TILES):
        tile = begin + tl.arange(0, TILES)
        here = (tile < tiles)[:, None] & inside[None, :]
        some = tl.load(count + tile, mask=tile < tiles, other=0)
        away = tl.load(first + tile[:, None] * channels + column[None, :], mask=here, other=0) - center[None, :]
        squares += tl.load(second + tile[:, None] * channels + column[None, :], mask=here, other=0)
        squares += some[:, None] * away * away
    square = tl.sum(squares, axis=0)
    tl.store(mean + column, center, mask=inside)
    tl.store(scale + column, 1.0 / tl.sqrt(square / rows + EPS), mask=inside)
    rate = tl.full([CHANNELS], MOMENTUM, dtype=TOTAL)  # as a plain number it would be rounded to float32
    if CUMULATIVE:
        rate = tl.zeros([CHANNELS], dtype=TOTAL) + 1.0 / tl.load(tracked).to(TOTAL)
    before = tl.load(running_mean + column, mask=inside, other=0)
    tl.store(running_mean + column, before + rate * (center - before), mask=inside)
    before = tl.load(running_var + column, mask=inside, other=0)
    tl.store(running_var + column, before + rate * (square / (rows - 1) - before), mask=inside)


@jit("x mean scale weight bias out rows channels")
def _apply_kernel(
    x, mean, scale, weight, bias, out, rows, channels, TOTAL: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = column < channels
    here, cell = (row < rows)[:, None] & inside[None, :], row[:, None] * channels + column[None, :]
    slope = tl.load(scale + column, mask=inside, other=0) * tl.load(weight + column, mask=inside, other=0).to(TOTAL)
    value = tl.load(x + cell, mask=here, other=0).to(TOTAL) - tl.load(mean + column, mask=inside, other=0)[None, :]
    value = value * slope[None, :] + tl.load(bias + column, mask=inside, other=0).to(TOTAL)[None, :]
    tl.store(out + cell, tl.where(value < 0, 0.0, value), mask=here)  # NaN stays


@triton.jit
def _through_relu(grad, x, mean, scale, weight, bias, row, column, rows, channels, TOTAL: tl.constexpr):
    """The gradient that ReLU lets through, and the normalized value."""
    inside = column < channels
    here, cell = (row < rows)[:, None] & inside[None, :], row[:, None] * channels + column[None, :]
    slope, shift = tl.load(weight + column, mask=inside, other=0), tl.load(bias + column, mask=inside, other=0)
    value = tl.load(x + cell, mask=here, other=0).to(TOTAL) - tl.load(mean + column, mask=inside, other=0)[None, :]
    value = value * tl.load(scale + column, mask=inside, other=0)[None, :]
    above = value * slope.to(TOTAL)[None, :] + shift.to(TOTAL)[None, :] > 0
    found = tl.load(grad + cell, mask=here, other=0).to(TOTAL)
    return tl.where(above, found, 0.0), value


@jit("grad x real mean scale weight bias first second rows channels")
def _backward_sums_kernel(
    grad,
    x,
    real,
    mean,
    scale,
    weight,
    bias,
    first,
    second,
    rows,
    channels,
    TOTAL: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    tile = tl.program_id(0).to(tl.int64)
    row, column = tile * ROWS + tl.arange(0, ROWS), tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    through, value = _through_relu(grad, x, mean, scale, weight, bias, row, column, rows, channels, TOTAL)
    counts = tl.load(real + row, mask=row < rows, other=0).to(TOTAL)
    through = through * counts[:, None]
    tl.store(first + tile * channels + column, tl.sum(through, axis=0), mask=column < channels)
    tl.store(second + tile * channels + column, tl.sum(through * value, axis=0), mask=column < channels)


@jit("first second count grad_bias grad_weight mean_grad mean_product channels tiles")
def _backward_totals_kernel(
    first,
    second,
    count,
    grad_bias,
    grad_weight,
    mean_grad,
    mean_product,
    channels,
    tiles,
    TOTAL: tl.constexpr,
    TILES: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    column = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    inside = column < channels
    number = tl.zeros([TILES], dtype=TOTAL)
    total, product = tl.zeros([TILES, CHANNELS], dtype=TOTAL), tl.zeros([TILES, CHANNELS], dtype=TOTAL)
    for begin in range(0, tiles, TILES):
        tile = begin + tl.arange(0, TILES)
        here = (tile < tiles)[:, None] & inside[None, :]
        number += tl.load(count + tile, mask=tile < tiles, other=0)
        total += tl.load(first + tile[:, None] * channels + column[None, :], mask=here, other=0)
        product += tl.load(second + tile[:, None] * channels + column[None, :], mask=here, other=0)
    rows, of_bias, of_weight = tl.sum(number, axis=0), tl.sum(total, axis=0), tl.sum(product, axis=0)
    tl.store(grad_bias + column, of_bias, mask=inside)
    tl.store(grad_weight + column, of_weight, mask=inside)
    tl.store(mean_grad + column, of_bias / rows, mask=inside)
    tl.store(mean_product + column, of_weight / rows, mask=inside)


@jit("grad x real mean scale weight bias mean_grad mean_product out rows channels")
def _backward_apply_kernel(
    grad,
    x,
    real,
    mean,
    scale,
    weight,
    bias,
    mean_grad,
    mean_product,
    out,
    rows,
    channels,
    TOTAL: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = column < channels
    through, value = _through_relu(grad, x, mean, scale, weight, bias, row, column, rows, channels, TOTAL)
    slope = tl.load(scale + column, mask=inside, other=0) * tl.load(weight + column, mask=inside, other=0).to(TOTAL)
    change = through - tl.load(mean_grad + column, mask=inside, other=0)[None, :]
    change = (change - value * tl.load(mean_product + column, mask=inside, other=0)[None, :]) * slope[None, :]
    counts = tl.load(real + row, mask=row < rows, other=0)
    here = (row < rows)[:, None] & inside[None, :]
    cell = row[:, None] * channels + column[None, :]
    tl.store(out + cell, tl.where((counts != 0)[:, None], change, 0.0), mask=here)


def norm_relu(
    x: Tensor, weight: Tensor, bias: Tensor, real: Tensor, norm: nn.BatchNorm1d
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The result, and what its gradient needs; running statistics are updated."""
    rows, channels = x.shape
    tiles, groups, wide = triton.cdiv(rows, ROWS), triton.cdiv(channels, CHANNELS), part_type(x)
    first, second = x.new_empty(2, tiles, channels, dtype=wide)
    count = x.new_empty(tiles, dtype=wide)
    mean, scale = x.new_empty(2, channels, dtype=wide)
    out, total = torch.empty_like(x), total_type(x)
    sizes = {"TOTAL": total, "CHANNELS": CHANNELS}
    with torch.cuda.device_of(x):
        _moments_kernel[(tiles, groups)](x, real, first, second, count, rows, channels, ROWS=ROWS, **sizes)
        _statistics_kernel[(groups,)](
            first,
            second,
            count,
            mean,
            scale,
            norm.running_mean,
            norm.running_var,
            norm.num_batches_tracked,
            channels,
            tiles,
            EPS=norm.eps,
            MOMENTUM=norm.momentum or 0.0,
            CUMULATIVE=norm.momentum is None,
            TILES=TILES,
            **sizes,
        )
        _apply_kernel[(tiles, groups)](x, mean, scale, weight, bias, out, rows, channels, ROWS=ROWS, **sizes)
    return out, (x, real, mean, scale, weight, bias, count)


def norm_relu_backward(
    grad: Tensor, x: Tensor, real: Tensor, mean: Tensor, scale: Tensor, weight: Tensor, bias: Tensor, count: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `x`, of the weight and of the bias."""
    rows, channels = x.shape
    tiles, groups, wide = triton.cdiv(rows, ROWS), triton.cdiv(channels, CHANNELS), part_type(x)
    first, second = x.new_empty(2, tiles, channels, dtype=wide)
    mean_grad, mean_product = x.new_empty(2, channels, dtype=wide)
    grad_x, grad_weight, grad_bias = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(bias)
    sizes, given = {"TOTAL": total_type(x), "CHANNELS": CHANNELS}, (x, real, mean, scale, weight, bias)
    with torch.cuda.device_of(x):
        _backward_sums_kernel[(tiles, groups)](grad, *given, first, second, rows, channels, ROWS=ROWS, **sizes)
        _backward_totals_kernel[(groups,)](
            first, second, count, grad_bias, grad_weight, mean_grad, mean_product, channels, tiles, TILES=TILES, **sizes
        )
        _backward_apply_kernel[(tiles, groups)](
            grad, *given, mean_grad, mean_product, grad_x, rows, channels, ROWS=ROWS, **sizes
        )
    return grad_x, grad_weight, grad_bias
