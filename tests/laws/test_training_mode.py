"""Gradients in training mode, where BatchNorm couples all rows, are those of finite differences."""

import pytest
import torch
from torch.autograd import gradcheck

from idgnn import IDGNN

HUB = 9  # leaves


def hub_with_triangle() -> torch.Tensor:
    edges = [(0, leaf) for leaf in range(1, HUB + 1)] + [(1, 2), (3, 4)]
    return torch.tensor(edges + [(b, a) for a, b in edges]).t()


@pytest.mark.parametrize("engine", ["trimmed", "exchange"])
@pytest.mark.parametrize(
    ("conv", "options"),
    [("gcn", {}), ("gin", {}), ("sage", {"aggr": "mean"}), ("sage", {"aggr": "sum"})],
    ids=["gcn", "gin", "sage-mean", "sage-sum"],
)
@pytest.mark.parametrize("pairs", [False, True], ids=["nodes", "pairs"])
def test_gradients_are_those_of_finite_differences(conv, options, engine, pairs):
    torch.manual_seed(0)
    edge_index, x = hub_with_triangle(), torch.randn(HUB + 1, 2, dtype=torch.double)
    model = IDGNN(2, 4, 2, 3, conv, **options).double().train()
    queries = torch.tensor([[0, 1, 3, 2], [1, 1, 0, 4]]) if pairs else None
    names = [name for name, _ in model.named_parameters()]
    values = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
    buffers = dict(model.named_buffers())

    def out(x, *weights):
        state = {**buffers, **dict(zip(names, weights, strict=True))}
        given = {"queries": queries, "engine": engine}
        return torch.func.functional_call(model, state, (x, edge_index), given)

    # Away from the kinks of ReLU a small step suffices; the few entries at a kink would not pass by chance.
    assert gradcheck(out, (x.requires_grad_(), *values), eps=1e-6, atol=1e-4, rtol=1e-3, nondet_tol=1e-9)
