"""Identity graph == Algorithm 1 == one colored copy of the graph per query: outputs and all gradients."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data

from idgnn import IDGNN
from tests.laws import brute_force
from tests.laws.graphs import as_pairs, queries
from tests.laws.networks import (
    ACTS,
    COLORS,
    KINDS,
    assert_engines_agree,
    assert_same,
    assert_same_function,
    encoder,
    layer,
    plain_twin,
    with_plain_weights,
)

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def engines(model: IDGNN) -> tuple[str, ...]:
    """All that can run its layers."""
    return ("trimmed", "exchange", "graph", "ego") if model.operator.sums else ("trimmed", "graph", "ego")


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=10)
@given(data=st.data())
def test_every_engine_is_brute_force(kind, num_layers, data):
    graph = data.draw(kind.graphs())
    asked = data.draw(queries(graph.num_nodes))
    color, act = data.draw(st.sampled_from(COLORS)), data.draw(st.sampled_from(ACTS))
    model = encoder(kind, num_layers, color=color, residual=data.draw(st.booleans()), act=act)
    listed = as_pairs(asked, graph.num_nodes)

    def reference(x, **edge):
        return brute_force.embeddings(model, x, graph.edge_index, listed, **edge)

    assert_engines_agree(model, graph, kind.edge(graph), asked, engines(model), reference)


@pytest.mark.parametrize("identity", [True, False])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=20)
@given(data=st.data())
def test_one_layer_is_its_equation_whoever_is_colored(kind, identity, data):
    graph = data.draw(kind.graphs())
    mask = st.lists(st.booleans(), min_size=graph.num_nodes, max_size=graph.num_nodes)
    colored = torch.tensor(data.draw(mask) if identity else [False] * graph.num_nodes)
    conv = layer(kind, identity, color=data.draw(st.sampled_from(COLORS)))
    names = list(kind.edge(graph))
    inputs = [graph.x, *kind.edge(graph).values()]

    def reference(x, *edge):
        return brute_force.one_round(conv, x, graph.edge_index, colored, **dict(zip(names, edge, strict=True)))

    def ours(x, *edge):
        return conv(x, graph.edge_index, colored=colored, **dict(zip(names, edge, strict=True)))

    out = assert_same_function(ours, reference, inputs, list(conv.parameters()), 1e-12)
    if not colored.any():
        assert torch.equal(conv(graph.x, graph.edge_index, **kind.edge(graph)), out)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=15)
@given(data=st.data())
def test_equal_weights_give_back_the_plain_gnn(kind, data):
    """Proposition 1: with both message functions equal an ID-GNN is its GNN."""
    graph = data.draw(kind.graphs())
    asked = data.draw(queries(graph.num_nodes))
    model = with_plain_weights(encoder(kind, data.draw(st.integers(1, 4))))
    read = [node for node, _ in as_pairs(asked, graph.num_nodes)]
    expected = plain_twin(model)(graph.x, graph.edge_index, **kind.edge(graph))[read]
    for engine in engines(model):
        assert_same(model(graph.x, graph.edge_index, queries=asked, engine=engine, **kind.edge(graph)), expected)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_color_that_is_seen_makes_a_difference(kind):
    """The other laws would also hold for a library that forgets the color."""
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    data = Data(
        x=torch.randn(3, 3, dtype=torch.double),
        edge_index=edge_index,
        edge_weight=torch.rand(6, dtype=torch.double) + 0.5,
        edge_attr=torch.randn(6, 2, dtype=torch.double),
    )
    model = encoder(kind, 3)
    plain = plain_twin(model)(data.x, edge_index, **kind.edge(data))
    for engine in engines(model):
        assert (model(data.x, edge_index, engine=engine, **kind.edge(data)) - plain).abs().max() > 1e-3
