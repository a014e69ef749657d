"""The identity graph is what DESIGN.md says it is: the right rows, none too many, each seeing what its node sees."""

from collections import Counter

import hypothesis.strategies as st
import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data

from idgnn import identity_cost, identity_graph
from idgnn.identity import cost
from tests.laws.graphs import as_pairs, graphs, queries
from tests.laws.networks import KINDS, assert_same, encoder, plain_twin

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def steps(data: Data) -> dict[int, dict[int, int]]:
    """Message steps between all pairs of nodes that can reach each other, by networkx."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(data.edge_index.t().tolist())
    return dict(nx.all_pairs_shortest_path_length(graph))


def cone(data: Data, num_layers: int, asked: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """{(v, u): d(v, u)} for every u with d(v, u) + d(u, r) <= K for some query (r, v)."""
    distance = steps(data)
    rows = {}
    for read, color in asked:
        for node, arrival in distance[color].items():
            if read in distance[node] and arrival + distance[node][read] <= num_layers:
                rows[color, node] = arrival
    return rows


@settings(max_examples=200)
@given(data=st.data(), graph=graphs(max_nodes=8), num_layers=st.integers(1, 6))
def test_rows_are_exactly_the_cones(data, graph, num_layers):
    asked = data.draw(queries(graph.num_nodes))
    built = identity_graph(graph, num_layers, asked)
    expected = cone(graph, num_layers, as_pairs(asked, graph.num_nodes))
    size = graph.num_nodes

    assert built.num_nodes == size + len(expected)
    assert built.node[:size].tolist() == list(range(size))
    assert not built.colored[:size].any()
    assert not built.arrival[:size].any()
    ordered = sorted(expected)
    assert built.node[size:].tolist() == [node for _, node in ordered]
    assert built.arrival[size:].tolist() == [expected[key] for key in ordered]
    assert built.colored[size:].tolist() == [color == node for color, node in ordered]


@settings(max_examples=100)
@given(data=st.data(), graph=graphs(max_nodes=7), num_layers=st.integers(1, 6))
def test_every_row_sees_a_copy_of_its_whole_neighborhood(data, graph, num_layers):
    asked = data.draw(queries(graph.num_nodes))
    built = identity_graph(graph, num_layers, asked)
    listed = as_pairs(asked, graph.num_nodes)
    rows = [(None, node) for node in range(graph.num_nodes)] + sorted(cone(graph, num_layers, listed))
    place = {row: number for number, row in enumerate(rows)}

    expected = Counter()
    for number, (color, node) in enumerate(rows):
        for edge, (source, target) in enumerate(graph.edge_index.t().tolist()):
            if target == node:
                own = place.get((color, source), place[None, source])
                expected[own, number, edge] += 1
    copied = zip(*built.edge_index.tolist(), built.edge.tolist(), strict=True)
    assert Counter(copied) == expected
    assert built.query_row.tolist() == [place.get((color, node), node) for node, color in listed]
    assert torch.equal(built.edge_attr, graph.edge_attr[built.edge])
    assert torch.equal(built.edge_weight, graph.edge_weight[built.edge])
    assert torch.equal(built.x, graph.x[built.node])
    assert torch.equal(built.node[built.edge_index], graph.edge_index[:, built.edge])


@settings(max_examples=100)
@given(data=st.data(), graph=graphs(max_nodes=8), num_layers=st.integers(1, 6))
def test_the_cost_is_known_before(data, graph, num_layers):
    asked = data.draw(queries(graph.num_nodes))
    told = identity_cost(graph, num_layers, asked)
    built = identity_graph(graph, num_layers, asked)
    per_row = (built.node, built.colored, built.arrival, built.x)
    per_edge = (built.edge_index, built.edge, built.edge_attr, built.edge_weight)
    assert (told.rows, told.edges) == (built.num_nodes, built.num_edges)
    assert told.bytes == sum(values.nbytes for values in per_row + per_edge)


@settings(max_examples=100)
@given(data=st.data(), graph=graphs(max_nodes=8), num_layers=st.integers(1, 4))
def test_what_does_not_fit_is_refused_and_what_fits_is_not(data, graph, num_layers):
    asked = data.draw(queries(graph.num_nodes))
    told = identity_cost(graph, num_layers, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "free_memory", lambda device: told.bytes)
        assert identity_graph(graph, num_layers, asked).num_nodes == told.rows
        patch.setattr(cost, "free_memory", lambda device: told.bytes - 1)
        with pytest.raises(ValueError, match=f"{told.rows:,} rows and {told.edges:,} edges"):
            identity_graph(graph, num_layers, asked)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=10)
@given(data=st.data())
def test_layers_run_on_it_as_on_any_graph(kind, data):
    """The layers know nothing of identity graphs; after K rounds plain rows hold the plain GNN, answers the ID-GNN."""
    graph = data.draw(kind.graphs())
    asked = data.draw(queries(graph.num_nodes))
    num_layers = data.draw(st.integers(1, 4))
    model = encoder(kind, num_layers)
    built = identity_graph(graph, num_layers, asked)
    h = model.lin_in(built.x).relu()
    for conv, norm in zip(model.convs, model.norms, strict=True):
        h = norm(conv(h, built.edge_index, colored=built.colored, **kind.edge(built))).relu()
    out = model.lin_out(torch.nn.functional.normalize(h))

    plain = plain_twin(model)(graph.x, graph.edge_index, **kind.edge(graph))
    assert_same(out[built.plain_row], plain)
    full = model(graph.x, graph.edge_index, queries=asked, engine="ego", **kind.edge(graph))
    assert_same(out[built.query_row], full)


@settings(max_examples=50)
@given(data=st.data(), graph=graphs(max_nodes=8), num_layers=st.integers(1, 5), chunk=st.integers(1, 30))
def test_built_in_parts_it_is_the_same(data, graph, num_layers, chunk):
    asked = data.draw(queries(graph.num_nodes))
    expected = identity_graph(graph, num_layers, asked).to_dict()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("idgnn.identity.cone.CHUNK", chunk)
        patch.setattr("idgnn.identity.identity_graph.CHUNK", chunk)
        found = identity_graph(graph, num_layers, asked).to_dict()
        assert identity_cost(graph, num_layers, asked).rows == expected["num_nodes"]
    assert list(found) == list(expected)
    for key, value in expected.items():
        same = torch.equal(found[key], value) if isinstance(value, torch.Tensor) else found[key] == value
        assert same, f"{key} differs"
