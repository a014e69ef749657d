from itertools import permutations

import networkx as nx
import pytest
import torch
from networkx.algorithms.isomorphism import GraphMatcher

from idgnn.experiments.peers.gsn import encode, gsn_spaces, pattern_counts
from tests.experiments.peers.laws import make, separates, small
from tests.experiments.peers.small_graphs import (
    awkward,
    decalin_and_bicyclopentyl,
    graph_of,
    hexagon_and_triangles,
    rook_and_shrikhande,
)

NETWORKS = ("gsn-v", "gsn-e")


@pytest.mark.parametrize("kind", ["cycle", "clique"])
def test_counts_are_matches_of_the_pattern_over_its_automorphisms(kind):
    graph = nx.gnp_random_graph(8, 0.6, seed=1)
    data = graph_of(graph)
    by_node, by_edge = pattern_counts(data.edge_index, 8, kind, 5)
    for size in (3, 4, 5):
        pattern = nx.cycle_graph(size) if kind == "cycle" else nx.complete_graph(size)
        found = {frozenset(frozenset((m[u], m[v])) for u, v in pattern.edges) for m in maps(graph, pattern)}
        nodes = [sum(any(v in edge for edge in each) for each in found) for v in range(8)]
        edges = [sum(frozenset(pair) in each for each in found) for pair in data.edge_index.t().tolist()]
        assert by_node[:, size - 3].tolist() == nodes and by_edge[:, size - 3].tolist() == edges


def maps(graph, pattern):
    """All injective maps of the pattern into the graph that keep its edges, by the reverse of what networkx gives."""
    return [
        {inner: outer for outer, inner in found.items()}
        for found in GraphMatcher(graph, pattern).subgraph_monomorphisms_iter()
    ]


def test_codes_tell_all_values_of_a_pattern_apart():
    counts = [torch.tensor([[0, 7], [3, 7]]), torch.tensor([[3, 9]])]
    one, other = encode(counts)
    assert one.tolist() == [[1, 0, 1, 0], [0, 1, 1, 0]] and other.tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_first_sums_are_those_of_the_formula(name):
    graphs = awkward()
    spaces = gsn_spaces(small(name), graphs)
    graph, nodes = graphs[7], spaces[7]["nodes"]
    by_edge = name == "gsn-e"
    edges = graph.edge_index
    counted = [pattern_counts(each.coalesce().edge_index, each.num_nodes, "cycle", 6) for each in graphs]
    code = encode([each[by_edge] for each in counted])[7].float()
    for v in range(graph.num_nodes):
        incoming = (edges[1] == v).nonzero().flatten()
        if by_edge:
            own = torch.cat([graph.x[v], torch.zeros(code.size(1)), torch.ones(1)])
            ends = torch.cat([code, torch.zeros(len(code), 1)], dim=1)
            sent = [torch.cat([graph.x[edges[0, e]], ends[e]]) for e in incoming]
        else:
            own = torch.cat([graph.x[v], code[v]])
            sent = [torch.cat([graph.x[u], code[u]]) for u in edges[0, incoming]]
        torch.testing.assert_close(nodes.values["first"][v], own + sum(sent))


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_later_layers_are_gin_on_the_graph(name):
    graphs = awkward()
    network, store = make(small(name), graphs)
    network.eval()
    batch = store.batch(torch.tensor([[7]]))
    h, answer = batch["nodes"].values["first"], network.heads[0](batch["nodes"].values["x"].sum(0).view(1, 1, -1))
    n = graphs[7].num_nodes
    adjacency = torch.zeros(n, n).double()
    adjacency[graphs[7].edge_index[0], graphs[7].edge_index[1]] = 1
    for i, (layer, head) in enumerate(zip(network.layers, network.heads[1:], strict=True)):
        h = h if i == 0 else h + adjacency @ h
        for linear in layer.linears:  # BatchNorm in evaluation mode, before it has seen anything, divides by 1 + eps
            h = (linear(h[None])[0] / (1 + 1e-5) ** 0.5).relu()
        answer = answer + head(h.sum(0).view(1, 1, -1))
    torch.testing.assert_close(network(batch), answer)


@pytest.mark.parametrize("name", NETWORKS)
def test_it_separates_what_its_counts_separate(name):
    assert separates(small(name), hexagon_and_triangles())  # by triangles, and by cycles of six
    assert separates(small(name), decalin_and_bicyclopentyl())
    assert not separates(small(name, pattern_size=4), decalin_and_bicyclopentyl())  # rings of five and six
    assert not separates(small(name, pattern_size=3), rook_and_shrikhande())  # as many triangles at each node
    assert separates(small(name, pattern="clique", pattern_size=4), rook_and_shrikhande())


def test_cycles_need_not_be_induced():
    """The complete graph of four nodes has three cycles of four, each through all of its nodes."""
    complete = torch.tensor(list(permutations(range(4), 2))).t()
    nodes, edges = pattern_counts(complete, 4, "cycle", 4)
    assert nodes.tolist() == [[3, 3]] * 4 and edges.tolist() == [[2, 2]] * 12
