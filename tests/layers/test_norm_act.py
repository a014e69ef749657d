"""BatchNorm and a nonlinearity over rows with padding are those of the real rows alone."""

import pytest
import torch
from torch import nn

from idgnn.layers.norm_act import norm_act

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
ACTIVATIONS = {"relu": nn.ReLU(), "gelu": nn.GELU(), "silu": nn.SiLU()}
DEVICES = ["cpu", pytest.param("cuda", marks=on_a_gpu)]


def made(device: str, dtype: torch.dtype, channels: int, momentum: float | None) -> nn.BatchNorm1d:
    norm = nn.BatchNorm1d(channels, momentum=momentum).to(device, dtype)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(channels, generator=generator))
        norm.bias.copy_(torch.randn(channels, generator=generator))
    return norm


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize(("rows", "channels"), [(3, 1), (130, 33), (9000, 70)])
@pytest.mark.parametrize(("momentum", "act"), [(0.1, "relu"), (None, "relu"), (0.1, "silu"), (None, "gelu")])
def test_it_is_that_of_the_real_rows(device, dtype, tolerance, rows, channels, momentum, act):
    tolerance *= max(1, rows // 1000)  # both sum up as many rounded numbers
    generator = torch.Generator().manual_seed(rows)
    given = (3 * torch.randn(rows, channels, generator=generator, dtype=torch.double) + 5).to(device, dtype)
    real = (torch.rand(rows, generator=generator) < 0.7).to(device)
    real[:2] = True
    ours, theirs = (made(device, dtype, channels, momentum) for _ in range(2))
    for _ in range(2):  # the second time the running statistics are no longer the initial ones
        x, y = (given.clone().requires_grad_() for _ in range(2))
        out, expected = norm_act(x, ours, real, act), ACTIVATIONS[act](theirs(y[real]))
        weights = torch.linspace(-1, 2, expected.numel(), device=device, dtype=dtype).view_as(expected)
        (out[real] * weights).sum().backward()
        (expected * weights).sum().backward()
        assert x.grad is not None and y.grad is not None
        assert not x.grad[~real].any(), "padding has a gradient"
        assert out.isfinite().all()
        assert_close(out[real], expected, tolerance)
        assert_close(x.grad, y.grad, tolerance)
    for name, value in theirs.named_parameters():
        assert_close(ours.get_parameter(name).grad, value.grad, tolerance)
    for name, value in theirs.named_buffers():
        assert_close(ours.get_buffer(name), value, tolerance)


@pytest.mark.parametrize("device", DEVICES)
def test_in_evaluation_mode_every_row_counts_by_itself(device):
    norm, x = made(device, torch.float32, 4, 0.1).eval(), torch.randn(5, 4, device=device)
    assert torch.equal(norm_act(x, norm, torch.zeros(5, dtype=torch.bool, device=device)), norm(x).relu())
    assert int(norm.num_batches_tracked) == 0


@on_a_gpu
def test_half_precision_has_statistics_in_float32():
    x = torch.randn(4000, 48, device="cuda") + 3
    norm, real = made("cuda", torch.float32, 48, 0.1), torch.arange(4000, device="cuda") < 3000
    out, expected = norm_act(x.bfloat16(), norm, real), made("cuda", torch.float32, 48, 0.1)(x[:3000]).relu()
    assert out.dtype == torch.bfloat16
    assert (out[:3000].float() - expected).abs().max() < 0.1


def assert_close(ours, theirs, tolerance: float) -> None:
    scale = max(1.0, float(theirs.detach().abs().max()))
    difference = float((ours.detach() - theirs.detach()).abs().max())
    assert difference <= tolerance * scale
