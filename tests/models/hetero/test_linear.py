"""One product for each group of rows."""

import torch

from idgnn.models.hetero.linear import grouped_linear, grouped_linear_plain


def test_grouped_linear_equals_its_plain_twin():
    sizes = [3, 0, 4]
    x = torch.randn(7, 2, dtype=torch.double, requires_grad=True)
    weights = [torch.randn(5, 2, dtype=torch.double, requires_grad=True) for _ in sizes]
    out, plain = grouped_linear(x, weights, sizes), grouped_linear_plain(x, weights, sizes)
    torch.testing.assert_close(out, plain)
    for create_graph in (False, True):
        found = [
            torch.autograd.grad(y.square().sum(), [x, *weights], retain_graph=True, create_graph=create_graph)
            for y in (out, plain)
        ]
        torch.testing.assert_close(found[0], found[1])
    assert torch.autograd.gradgradcheck(lambda x, *w: grouped_linear(x, w, sizes), (x, *weights))
