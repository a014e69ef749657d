import networkx as nx
import torch
from hypothesis import given

from idgnn.identity.walks.blocks import connected_components, contiguous_blocks
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
