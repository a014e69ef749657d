"""Linear maps by color against those of PyTorch."""

import pytest
import torch

from idgnn.layers.linear import linear, linear_by_color, linear_by_color_plain

SIZES = [[0, 0], [3, 0], [0, 2], [3, 2], [2, 1, 3], [2, 0, 1], [1500, 1100]]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rows_of_each_color_have_its_weights(sizes, biased, dtype):
    """Values and gradients; 6 and 5 channels are what is not aligned."""
    torch.manual_seed(0)
    x = torch.randn(sum(sizes), 6, dtype=dtype)
    shapes = [(5, 6)] * len(sizes) + [(5,)] * len(sizes) * biased
    parameters = [torch.randn(shape, dtype=dtype) for shape in shapes]
    results = []
    for function in (linear_by_color, linear_by_color_plain):
        leaves = [each.clone().requires_grad_() for each in (x, *parameters)]
        weights, biases = leaves[1 : len(sizes) + 1], leaves[len(sizes) + 1 :] or None
        out = function(leaves[0], sizes, weights, biases)
        towards = torch.linspace(-1, 1, out.numel(), dtype=dtype).view_as(out)
        results.append([out, *torch.autograd.grad(out, leaves, towards, allow_unused=True, materialize_grads=True)])
    tolerance = 1e-12 if dtype == torch.float64 else 2e-4
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("sizes", [[3, 2], [1100, 30]], ids=str)
def test_it_can_be_differentiated_twice(sizes):
    torch.manual_seed(0)
    x, *weights = (torch.randn(shape, dtype=torch.double) for shape in ((sum(sizes), 3), (2, 3), (2, 3)))
    results = []
    for function in (linear_by_color, linear_by_color_plain):
        leaves = [each.clone().requires_grad_() for each in (x, *weights)]
        out = function(leaves[0], sizes, leaves[1:])
        gradients = torch.autograd.grad(out.pow(3).sum(), leaves, create_graph=True)
        penalty = sum(gradient.pow(2).mean() for gradient in gradients)
        results.append(torch.autograd.grad(penalty, leaves))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_rows_that_are_not_contiguous_are_read_right():
    torch.manual_seed(0)
    x, weight = torch.randn(6, 2048).t(), torch.randn(7, 6)
    assert not x.is_contiguous()
    torch.testing.assert_close(linear(x, weight), torch.nn.functional.linear(x, weight), atol=1e-5, rtol=1e-5)
