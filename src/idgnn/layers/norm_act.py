r"""BatchNorm and the nonlinearity over the rows of a batch that are no padding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from idgnn.choices import Activation
from idgnn.layers.activation import activate
from idgnn.layers.aggregation.dispatch import has_kernels


def norm_act(x: Tensor, norm: nn.BatchNorm1d, real: Tensor, act: Activation = "relu") -> Tensor:
    r""":math:`\sigma(\textsc{BatchNorm}(\mathbf{x}))` with the statistics of real rows alone.

    In training mode the running statistics are updated as `norm` itself would update them on the real rows, of which
    there are at least two. Rows of padding get finite values, and send no gradient back.

    Args:
        x: `[rows, channels]`.
        norm: Of these channels; it keeps running statistics.
        real: Which rows are no padding `[rows]`.
        act: The nonlinearity; with `"relu"` kernels do both in one pass.

    Example:
        >>> norm = nn.BatchNorm1d(1)
        >>> norm_act(torch.tensor([[1.0], [3.0], [100.0]]), norm, torch.tensor([True, True, False]))[:2]
        tensor([[0.0000],
                [1.0000]], grad_fn=<SliceBackward0>)
        >>> norm.running_mean  # a tenth of the way from 0 to the mean of 1 and 3
        tensor([0.2000])
    """
    if not norm.training:
        out = batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.0, norm.eps)
        return activate(out, act, overwrite=True)
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    if act != "relu" or torch.compiler.is_compiling() or not has_kernels(x.device):
        return activate(_norm_plain(x, norm, real), act, overwrite=True)
    return _NormRelu.apply(x, norm.weight, norm.bias, real, norm)


def _norm_plain(x: Tensor, norm: nn.BatchNorm1d, real: Tensor) -> Tensor:
    """BatchNorm in plain PyTorch: what the kernels are compared with, and what `torch.compile` fuses."""
    assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
    wide = x if x.dtype == torch.float64 else x.float()
    share = real.to(wide.dtype).unsqueeze(-1)
    count = share.sum()
    mean = (wide * share).sum(0) / count
    away = wide - mean
    variance = (away * away * share).sum(0) / count
    with torch.no_grad():
        rate = 1 / norm.num_batches_tracked.to(norm.running_mean.dtype) if norm.momentum is None else norm.momentum
        norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), rate)
        norm.running_var.lerp_((variance * (count / (count - 1))).to(norm.running_var.dtype), rate)
    out = away * (variance + norm.eps).rsqrt()
    if norm.affine:
        out = out * norm.weight + norm.bias
    return out.to(x.dtype)


class _NormRelu(torch.autograd.Function):
    """:func:`norm_act` with ReLU by kernels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, real: Tensor, norm: nn.BatchNorm1d) -> Tensor:  # type: ignore[override]
        from idgnn.layers.aggregation import kernels

        out, saved = kernels.norm_relu(x.contiguous(), weight, bias, real, norm)
        ctx.save_for_backward(*saved)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:  # type: ignore[override]
        from idgnn.layers.aggregation import kernels

        return *kernels.norm_relu_backward(grad.contiguous(), *ctx.saved_tensors), None, None
