"""Rows that take aggregates of blocks of messages are rows that take the messages, gradients included."""

import warnings
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from idgnn import IDGNN
from idgnn.identity import blocks
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.models.large_graph import LargeGraph
from tests.laws import brute_force
from tests.laws.graphs import as_pairs, graphs, pairs, roots
from tests.laws.networks import KINDS, assert_same, encoder

NAMES = ("sage-max", "gat", "gat-2-heads")


def forced(size: int):
    """Blocks of so many messages, wherever there can be one."""
    return patch.multiple(blocks, BLOCK=size, LEAST_GAIN=0)


def assert_same_gradients(model: IDGNN, ours: Tensor, theirs: Tensor) -> None:
    weights = list(model.parameters())
    towards = torch.linspace(-1, 2, ours.numel(), dtype=ours.dtype).view_as(ours)
    found, expected = (
        torch.autograd.grad(out, weights, towards, materialize_grads=True, allow_unused=True) for out in (ours, theirs)
    )
    for mine, other in zip(found, expected, strict=True):
        assert_same(mine, other, 1e-8)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data(), num_layers=st.integers(1, 5), size=st.integers(1, 3))
def test_batches_of_roots_are_brute_force(name, data, num_layers, size):
    graph = data.draw(graphs())
    queries = data.draw(st.one_of(roots(graph.num_nodes), pairs(graph.num_nodes)))
    model = encoder(KINDS[name], num_layers)
    with forced(size):
        found = model.run(LargeGraph(model, Data(x=graph.x, edge_index=graph.edge_index)).prepare(queries))
    expected = brute_force.embeddings(model, graph.x, graph.edge_index, as_pairs(queries, graph.num_nodes))
    assert_same(found, expected, 1e-9)
    assert_same_gradients(model, found, expected)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(data=st.data(), num_layers=st.integers(1, 5), size=st.integers(1, 3))
def test_embeddings_are_brute_force(name, data, num_layers, size):
    graph = data.draw(graphs())
    queries = data.draw(st.one_of(roots(graph.num_nodes), pairs(graph.num_nodes)))
    model = encoder(KINDS[name], num_layers)
    with forced(size), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColorWarning)
        found = model.embed(Data(x=graph.x, edge_index=graph.edge_index), queries)
    with torch.no_grad():
        expected = brute_force.embeddings(model, graph.x, graph.edge_index, as_pairs(queries, graph.num_nodes))
    assert_same(found, expected, 1e-9)


def hubs(size: int = 120) -> Data:
    """Three hubs that all other nodes are joined to, and some edges between these."""
    generator = torch.Generator().manual_seed(0)
    rays = torch.cartesian_prod(torch.arange(3), torch.arange(3, size)).t()
    edges = torch.cat([rays, torch.randint(3, size, (2, size), generator=generator)], dim=1)
    edges = torch.cat([edges, edges.flip(0)], dim=1).unique(dim=1)
    return Data(x=torch.randn(size, 3, generator=generator, dtype=torch.double), edge_index=edges)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_layers", [3, 4])
def test_in_training_hubs_take_blocks_and_the_rows_stay_the_same(name, num_layers):
    """BatchNorm takes its statistics over the same rows; nothing is forced here."""
    graph, model = hubs(), encoder(KINDS[name], num_layers).train()
    queries = torch.arange(0, 120, 3)
    ready = LargeGraph(model, graph).prepare(queries)
    assert any(round_.blocks is not None for round_ in ready.plan.rounds)
    found, expected = model.run(ready), model(graph.x, graph.edge_index, queries=queries)
    assert_same(found, expected, 1e-9)
    assert_same_gradients(model, found, expected)


@pytest.mark.parametrize(("name", "most"), [("sage-max", 0.4), ("gat", 0.7)])
def test_rows_of_hubs_receive_few_messages(name, most):
    graph, model = hubs(400), encoder(KINDS[name], 3)
    queries = torch.arange(3, 400)
    taken, direct = (
        sum(
            round_.plain.source.numel() + (0 if round_.blocks is None else round_.blocks.messages.source.numel())
            for round_ in plan.rounds
        )
        for plan in (
            LargeGraph(model, graph).prepare(queries).plan,
            model.prepare(graph.x, graph.edge_index, queries=queries).plan,
        )
    )
    assert taken < most * direct


def test_layers_that_sum_take_none():
    model = IDGNN(3, 8, 2, 3, "gcn").double()
    plan = LargeGraph(model, hubs()).prepare(torch.arange(120)).plan
    assert all(round_.blocks is None for round_ in plan.rounds)
