"""States that are pooled, against loops over them."""

from __future__ import annotations

import pytest
import torch

from idgnn import IDGNN
from idgnn.identity.schedule import group_messages
from idgnn.models.pooling import pool_states
from tests.models.wrapped import EDGES, NUM_NODES, features

SOURCE, TARGET, QUERIES = torch.tensor([3, 0, 1, 4, 2]), torch.tensor([0, 0, 0, 2, 2]), 3  # query 1 has no state
NONE = torch.empty(0, dtype=torch.long)


@pytest.mark.parametrize("kind", ["sum", "mean", "max"])
def test_values_and_gradients_are_those_of_a_loop(kind) -> None:
    pool = group_messages(SOURCE, TARGET, NONE, 5, QUERIES)
    h = torch.randn(5, 4, dtype=torch.double, requires_grad=True)
    found = pool_states(h, pool, kind)
    function = {"sum": lambda rows: rows.sum(0), "mean": lambda rows: rows.mean(0), "max": lambda rows: rows.amax(0)}
    for query in range(QUERIES):
        rows = h[SOURCE[query == TARGET]]
        expected = function[kind](rows) if len(rows) else h.new_zeros(4)
        torch.testing.assert_close(found[query], expected)
    weight = torch.randn(QUERIES, 4, dtype=torch.double)
    (gradient,) = torch.autograd.grad((found * weight).sum(), h)
    by_loop = sum((function[kind](h[SOURCE[q == TARGET]]) * weight[q]).sum() for q in (0, 2))
    torch.testing.assert_close(gradient, torch.autograd.grad(by_loop, h)[0])


def test_a_maximum_is_one_of_its_numbers() -> None:
    """To the bit: the states of other queries, however large, do not round it."""
    pool = group_messages(torch.arange(3), torch.tensor([0, 0, 1]), NONE, 3, 2)
    found = pool_states(torch.tensor([[-0.123], [-0.1], [-1e7]]), pool, "max")
    assert torch.equal(found, torch.tensor([[-0.1], [-1e7]]))


@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_answers_about_a_graph_do_not_depend_on_the_others_of_its_batch(pool) -> None:
    model = IDGNN(4, 8, 3, 2, "gin", colors=2, pool=pool, normalize=False).eval()
    x = features()
    edges = torch.cat([EDGES, EDGES + NUM_NODES], dim=1)
    for scale in (1.0, 1e7):
        found = model(torch.cat([x, scale * x]), edges)[:NUM_NODES]
        torch.testing.assert_close(found, model(x, EDGES), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["sum", "mean", "max"])
def test_states_of_no_width_are_pooled(kind) -> None:
    pool = group_messages(SOURCE, TARGET, NONE, 5, QUERIES)
    assert pool_states(torch.ones(5, 0), pool, kind).shape == (QUERIES, 0)
