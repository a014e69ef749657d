"""The heterogeneous identity graph has the right rows, none too many, each seeing what its node sees."""

from collections import Counter

import hypothesis.strategies as st
import networkx as nx
import pytest
from hypothesis import given, settings
from torch_geometric.data import HeteroData

from idgnn import identity_cost, identity_graph, reachable
from tests.laws.hetero_graphs import as_typed_pairs, hetero_graphs, typed_queries

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def distances(data: HeteroData) -> dict:
    """Message steps between all (type, node) that can reach each other, by networkx."""
    graph = nx.DiGraph()
    graph.add_nodes_from((kind, node) for kind in data.node_types for node in range(data[kind].num_nodes))
    for source, relation, target in data.edge_types:
        for one, other in data[source, relation, target].edge_index.t().tolist():
            graph.add_edge((source, one), (target, other))
    return dict(nx.all_pairs_shortest_path_length(graph))


@settings(max_examples=100)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 5))
def test_rows_are_exactly_the_cones(data, graph, num_layers):
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    read, root, pairs = as_typed_pairs(graph, asked)
    distance, expected = distances(graph), set()
    for node, color in pairs:
        for (kind, u), arrival in distance[root, color].items():
            if arrival + distance[kind, u].get((read, node), num_layers + 1) <= num_layers:
                expected.add((kind, u, color, arrival))
    built = identity_graph(graph, num_layers, asked)
    for kind in graph.node_types:
        size = graph[kind].num_nodes
        rows = built[kind]
        mine = sorted((color, u, arrival) for k, u, color, arrival in expected if k == kind)
        assert rows.node.tolist() == list(range(size)) + [u for _, u, _ in mine]
        assert rows.arrival.tolist() == [0] * size + [arrival for *_, arrival in mine]
        assert rows.colored.tolist() == [False] * size + [kind == root and u == color for color, u, _ in mine]
        assert (rows.x == graph[kind].x[rows.node]).all()
    cost = identity_cost(graph, num_layers, asked)
    assert cost.rows == sum(built[kind].num_nodes for kind in graph.node_types)
    assert cost.edges == sum(built[kind].num_edges for kind in graph.edge_types)


@settings(max_examples=60)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 5))
def test_every_row_sees_a_copy_of_its_whole_neighborhood(data, graph, num_layers):
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    read, _, pairs = as_typed_pairs(graph, asked)
    built = identity_graph(graph, num_layers, asked)
    assert built[read].node[built.query_row].tolist() == [node for node, _ in pairs]
    for kind in graph.edge_types:
        source, _, target = kind
        rows, edges = built[kind], graph[kind].edge_index
        copies = built[source].node[rows.edge_index[0]], built[target].node[rows.edge_index[1]]
        assert (edges[0][rows.edge] == copies[0]).all() and (edges[1][rows.edge] == copies[1]).all()
        assert (rows.edge_attr == graph[kind].edge_attr[rows.edge]).all()
        into = Counter(zip(rows.edge_index[1].tolist(), rows.edge.tolist(), strict=True))
        expected = Counter(
            (row, edge)
            for row, node in enumerate(built[target].node.tolist())
            for edge, end in enumerate(edges[1].tolist())
            if end == node
        )
        assert into == expected


@settings(max_examples=60)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 5))
def test_reachable_finds_what_networkx_finds(data, graph, num_layers):
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    read, root, pairs = as_typed_pairs(graph, asked)
    colors = sorted({color for _, color in pairs})
    (kind, nodes), (color_kind, found) = reachable(graph, (root, colors), read, num_layers)
    distance = distances(graph)
    expected = [
        (node, color)
        for color in colors
        for node in range(graph[read].num_nodes)
        if distance[root, color].get((read, node), num_layers + 1) <= num_layers
    ]
    assert (kind, color_kind) == (read, root)
    assert list(zip(nodes.tolist(), found.tolist(), strict=True)) == expected
