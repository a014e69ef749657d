"""Linear maps by color against those of PyTorch."""

import pytest
import torch

from idgnn.layers.linear import linear, linear_and_update, linear_by_color, linear_by_color_plain
from idgnn.training.cuda_graphs import CudaGraphCache

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


def with_updates(function, x, sizes, weights, biases, updates):
    """Both maps: at once, or one after the other."""
    if function is linear_and_update:
        return linear_and_update(x, sizes, weights, updates, biases)
    colors = sizes[-len(updates) :]
    return function(x, sizes, weights, biases), function(x[x.size(0) - sum(colors) :], colors, updates)


@pytest.mark.parametrize("sizes", [[3, 2], [0, 2], [2, 1, 3], [2, 0, 1], [2, 3, 0], [1500, 1100]], ids=str)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("twice", [False, True])
def test_updates_are_a_second_map_of_the_last_colors(sizes, biased, twice):
    torch.manual_seed(0)
    number, dtype = len(sizes), torch.float32 if max(sizes) > 1000 else torch.float64
    shapes = [(sum(sizes), 6), *[(5, 6)] * number, *[(7, 6)] * (number - 1), *[(5,)] * number * biased]
    given, results = [torch.randn(shape, dtype=dtype) for shape in shapes], []
    for function in (linear_and_update, linear_by_color_plain):
        x, *leaves = [each.clone().requires_grad_() for each in given]
        weights, updates, biases = leaves[:number], leaves[number : 2 * number - 1], leaves[2 * number - 1 :] or None
        out, update = with_updates(function, x, sizes, weights, biases, updates)
        assert update.shape == (sum(sizes[1:]), 7)
        loss = out.pow(3).sum() + update.pow(3).sum() + (out[-1, 0] * update[-1]).sum()
        found = torch.autograd.grad(loss, [x, *leaves], allow_unused=True, create_graph=twice)
        if twice:
            loss = sum(each.pow(2).mean() for each in found if each is not None)
            found += torch.autograd.grad(loss, [x, *leaves], allow_unused=True)
        results.append([out, update, *found])
    tolerance = 1e-12 if dtype == torch.float64 else 1e-3
    for ours, theirs in zip(*results, strict=True):
        assert (ours is None) == (theirs is None), "weights of a color without rows have no gradient"
        if ours is not None:
            torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("biased", [False, True])
def test_branches_of_a_recorded_step_compute_the_same(biased):
    """Recorded once, replayed on other values: side by side, products read and write what they do one by one."""
    torch.manual_seed(0)
    sizes, options = [3000, 500], {"device": "cuda", "dtype": torch.float64}
    shapes = [(3500, 150), (150, 150), (150, 150), (150, 150), *[(150,), (150,)] * biased]
    given = [torch.randn(shape, **options).requires_grad_() for shape in shapes]

    def step():
        x, first, second, update, *biases = given
        for each in given:
            each.grad = None
        found = linear_and_update(x, sizes, [first, second], [update], biases or None)
        h = linear(found[0], second)
        (h.sin().sum() + found[1].cos().sum()).backward()
        return torch.cat([each.grad.flatten() for each in given])

    cache = CudaGraphCache()
    for _ in range(4):
        with torch.no_grad():
            for each in given:
                each.copy_(torch.randn_like(each))
        replayed = cache.run("step", lambda: None, lambda _: step())
        torch.cuda.synchronize()
        torch.testing.assert_close(replayed.clone(), step(), atol=1e-9, rtol=1e-9)


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
