"""Ego networks as Algorithm 1 extracts them."""

import hypothesis.strategies as st
import networkx as nx
import torch
from hypothesis import given, settings
from torch_geometric.data import Data

from idgnn.identity.ego import ego_networks
from tests.laws.graphs import as_pairs, graphs, queries


@settings(max_examples=100)
@given(data=st.data(), graph=graphs(max_nodes=7), num_layers=st.integers(1, 4))
def test_each_query_has_the_nodes_that_reach_it_and_all_edges_among_them(data, graph, num_layers):
    asked = data.draw(queries(graph.num_nodes))
    ego = ego_networks(graph, num_layers, asked)
    directed = nx.DiGraph()
    directed.add_nodes_from(range(graph.num_nodes))
    directed.add_edges_from(graph.edge_index.t().tolist())

    node, colored, edges, query_row = [], [], [], []
    for root, color in as_pairs(asked, graph.num_nodes):
        steps = dict(nx.single_target_shortest_path_length(directed, root))
        members = sorted(other for other in steps if steps[other] <= num_layers)
        place = {member: len(node) + number for number, member in enumerate(members)}
        for edge, (source, target) in enumerate(graph.edge_index.t().tolist()):
            if source in place and target in place:
                edges.append((place[source], place[target], edge))
        node += members
        colored += [member == color for member in members]
        query_row.append(place[root])
    assert ego.node.tolist() == node
    assert ego.colored.tolist() == colored
    assert ego.query_row.tolist() == query_row
    assert sorted(zip(*ego.edge_index.tolist(), ego.edge.tolist(), strict=True)) == sorted(edges)


def test_a_color_out_of_sight_colors_nobody():
    one_way = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    ego = ego_networks(one_way, 3, torch.tensor([[0], [1]]))
    assert ego.node.tolist() == [0]
    assert not ego.colored.any()


def test_no_nodes_have_no_ego_networks():
    ego = ego_networks(Data(num_nodes=0, edge_index=torch.empty(2, 0, dtype=torch.long)), 3)
    assert ego.node.numel() == ego.query_row.numel() == 0
