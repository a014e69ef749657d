"""What lies more than K steps away changes nothing."""

import hypothesis.strategies as st
import networkx as nx
import pytest
import torch
from hypothesis import assume, given, settings
from torch_geometric.data import Data

from idgnn import identity_graph
from tests.laws.graphs import CHANNELS, EDGE_DIM, graphs
from tests.laws.networks import KINDS, assert_same, encoder, plain_twin

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")

ENGINES = ("trimmed", "graph", "ego")


def steps_to(data: Data, node: int) -> dict[int, int]:
    """Message steps to `node`, of all nodes that reach it."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(data.edge_index.t().tolist())
    return dict(nx.single_target_shortest_path_length(graph, node))


def changed_outside(data: Data, inside: set[int], extra: list[tuple[int, int]]) -> Data:
    """Other features outside, other edges into nodes outside, and `extra` edges into nodes outside."""
    out = torch.tensor([node not in inside for node in range(data.num_nodes)])
    x = torch.where(out[:, None], 10 * torch.randn_like(data.x), data.x)
    kept = ~out[data.edge_index[1]]
    added = torch.tensor([edge for edge in extra if edge[1] not in inside], dtype=torch.long).reshape(-1, 2).t()
    count = added.size(1)
    return Data(
        x=x,
        edge_index=torch.cat([data.edge_index[:, kept], added], dim=1),
        edge_weight=torch.cat([data.edge_weight[kept], torch.rand(count, dtype=torch.double) + 0.5]),
        edge_attr=torch.cat([data.edge_attr[kept], torch.randn(count, EDGE_DIM, dtype=torch.double)]),
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=15)
@given(data=st.data())
def test_what_lies_beyond_k_steps_changes_nothing(kind, data):
    graph = data.draw(graphs(max_nodes=8, repeated_loops=False))
    node = st.integers(0, graph.num_nodes - 1)
    root, num_layers = data.draw(node), data.draw(st.integers(1, 3))
    inside = {other for other, steps in steps_to(graph, root).items() if steps <= num_layers}
    assume(len(inside) < graph.num_nodes)
    other = changed_outside(graph, inside, data.draw(st.lists(st.tuples(node, node), max_size=8, unique=True)))
    color = data.draw(st.sampled_from(sorted(inside)))
    model = encoder(kind, num_layers)
    for asked in (torch.tensor([root]), torch.tensor([[root], [color]])):
        for engine in ENGINES:
            before = model(graph.x, graph.edge_index, queries=asked, engine=engine, **kind.edge(graph))
            after = model(other.x, other.edge_index, queries=asked, engine=engine, **kind.edge(other))
            assert_same(after, before, 1e-12)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=15)
@given(data=st.data())
def test_a_color_beyond_k_steps_is_not_seen(kind, data):
    graph = data.draw(kind.graphs())
    num_layers = data.draw(st.integers(1, 3))
    root = data.draw(st.integers(0, graph.num_nodes - 1))
    near = {node for node, steps in steps_to(graph, root).items() if steps <= num_layers}
    far = sorted(set(range(graph.num_nodes)) - near)
    assume(far)
    asked = torch.tensor([[root] * len(far), far])
    model = encoder(kind, num_layers)
    plain = plain_twin(model)(graph.x, graph.edge_index, **kind.edge(graph))[[root] * len(far)]
    for engine in ENGINES:
        assert_same(model(graph.x, graph.edge_index, queries=asked, engine=engine, **kind.edge(graph)), plain)


def test_a_query_out_of_reach_costs_no_row():
    path = Data(x=torch.ones(5, CHANNELS), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    asked = torch.tensor([[4, 0, 2], [0, 4, 1]])  # four steps, no way back, one step
    built = identity_graph(path, 3, asked)
    assert built.num_nodes == 5 + 2
    assert built.query_row.tolist() == [4, 0, 6]
