"""Renaming the nodes and reordering the edges renames the answers, and changes nothing else."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data

from idgnn import identity_cost
from tests.laws.graphs import queries
from tests.laws.networks import KINDS, assert_same, encoder

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def renamed(data: Data, name: torch.Tensor, order: torch.Tensor) -> Data:
    """The same graph with node i called `name[i]` and its edges listed in another order."""
    x = torch.empty_like(data.x)
    x[name] = data.x
    return Data(
        x=x,
        edge_index=name[data.edge_index[:, order]],
        edge_weight=data.edge_weight[order],
        edge_attr=data.edge_attr[order],
    )


@pytest.mark.parametrize("identity", ["full", "fast", "none"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=10)
@given(data=st.data())
def test_permuting_nodes_permutes_answers(kind, identity, data):
    graph = data.draw(kind.graphs())
    name = torch.tensor(data.draw(st.permutations(range(graph.num_nodes))))
    order = torch.tensor(data.draw(st.permutations(range(graph.num_edges))), dtype=torch.long)
    other = renamed(graph, name, order)
    asked = data.draw(queries(graph.num_nodes))
    num_layers = data.draw(st.integers(1, 4))
    model = encoder(kind, num_layers, identity)

    before = model(graph.x, graph.edge_index, queries=asked, **kind.edge(graph))
    after = model(other.x, other.edge_index, queries=None if asked is None else name[asked], **kind.edge(other))
    assert_same(after[name] if asked is None else after, before, 1e-10)
    told = identity_cost(other, num_layers, None if asked is None else name[asked])
    assert told == identity_cost(graph, num_layers, asked)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=10)
@given(data=st.data())
def test_each_query_is_answered_as_if_it_were_the_only_one(kind, data):
    graph = data.draw(kind.graphs())
    asked = data.draw(queries(graph.num_nodes).filter(lambda asked: asked is not None))
    model = encoder(kind, data.draw(st.integers(1, 4)))
    together = model(graph.x, graph.edge_index, queries=asked, **kind.edge(graph))
    alone = [
        model(graph.x, graph.edge_index, queries=asked[..., number : number + 1], **kind.edge(graph))
        for number in range(asked.size(-1))
    ]
    assert_same(together, torch.cat(alone), 1e-10)
