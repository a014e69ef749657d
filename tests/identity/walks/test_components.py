from collections import Counter
from unittest.mock import patch

import networkx as nx
import torch
from hypothesis import given

from idgnn.identity.walks.components import connected_components, contiguous_blocks, twins
from tests.identity.plain_walks import awkward_graphs


def components(edge_index, num_nodes):
    graph = nx.Graph(edge_index.t().tolist())
    graph.add_nodes_from(range(num_nodes))
    return sorted(map(sorted, nx.connected_components(graph)))


def members(block):
    return [(block == number).nonzero().flatten().tolist() for number in block.unique().tolist()]


@given(awkward_graphs())
def test_components_are_those_of_networkx(graph):
    assert members(connected_components(*graph[0], graph[1])) == components(*graph)


def test_a_long_shuffled_path_is_one_component():
    path = torch.randperm(5000)
    assert connected_components(path[:-1], path[1:], 5000).unique().tolist() == [0]


@given(awkward_graphs())
def test_contiguous_blocks_are_the_finest_runs_without_an_edge_between_them(graph):
    source, target = graph[0].tolist()
    expected = [0] * graph[1]
    for node in range(1, graph[1]):
        crossed = any(min(s, t) < node <= max(s, t) for s, t in zip(source, target, strict=True))
        expected[node] = expected[node - 1] + (not crossed)
    assert contiguous_blocks(*graph[0], graph[1]).tolist() == expected


def neighbors(edge_index, num_nodes):
    source, target = edge_index.tolist()
    out, into = [Counter() for _ in range(num_nodes)], [Counter() for _ in range(num_nodes)]
    for s, t in zip(source, target, strict=True):
        out[s][t] += 1
        into[t][s] += 1
    return list(zip(out, into, strict=True))


@given(awkward_graphs())
def test_twins_are_represented_by_the_first_node_with_the_same_edges(graph):
    edges = neighbors(*graph)
    assert twins(*graph[0], graph[1]).tolist() == [edges.index(of_node) for of_node in edges]


@given(awkward_graphs())
def test_equal_hashes_do_not_make_twins(graph):
    with patch.object(torch, "randint", lambda *_, **__: torch.zeros(2, graph[1], dtype=torch.long)):
        first = twins(*graph[0], graph[1]).tolist()
    edges = neighbors(*graph)
    assert all(edges[node] == edges[other] for node, other in enumerate(first))
