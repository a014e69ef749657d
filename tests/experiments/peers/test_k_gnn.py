from itertools import combinations, product

import networkx as nx
import pytest
import torch
from torch.nn.functional import elu

from idgnn.experiments.peers.k_gnn import adjacency_of, k_gnn_spaces, pair_sets, triple_kinds, triple_sets
from tests.experiments.peers.laws import make, separates, small
from tests.experiments.peers.small_graphs import (
    awkward,
    decalin_and_bicyclopentyl,
    graph_of,
    hexagon_and_triangles,
    permuted,
    rook_and_shrikhande,
)

KGNN = small("1-2-3-gnn")


def networkx_of(graph):
    made = nx.Graph()
    made.add_nodes_from(range(graph.num_nodes))
    made.add_edges_from(graph.edge_index.t().tolist())
    return made


def links_by_hand(sets, graph, kind):
    """All pairs of positions of sets that differ in one node, with the condition of the paper or of the code."""
    found = set()
    for (i, s), (j, t) in product(enumerate(sets), repeat=2):
        if len(s & t) != len(s) - 1:
            continue
        (old,), (new,) = t - s, s - t  # a message from t to s: `new` takes the place of `old`
        near = [old] if kind == "malkin" else t
        back = [new] if kind == "malkin" else s
        if any(graph.has_edge(new, u) for u in near) or any(graph.has_edge(old, u) for u in back):
            found.add((j, i))
    return found


@pytest.mark.parametrize("which", range(9))
def test_pairs_are_linked_where_one_node_moves_along_an_edge(which):
    graph = awkward()[which]
    members, links = pair_sets(adjacency_of(graph))
    sets = [frozenset(each) for each in members.tolist()]
    assert sorted(map(sorted, sets)) == [list(each) for each in combinations(range(graph.num_nodes), 2)]
    assert set(map(tuple, links.t().tolist())) == links_by_hand(sets, networkx_of(graph), "malkin")
    assert links.size(1) == len(set(map(tuple, links.t().tolist())))


@pytest.mark.parametrize("kind", ["malkin", "local"])
@pytest.mark.parametrize("which", range(9))
def test_sets_of_three_are_the_connected_ones(which, kind):
    graph = awkward()[which]
    members, links = triple_sets(adjacency_of(graph), kind)
    sets, network = [frozenset(each) for each in members.tolist()], networkx_of(graph)
    connected = {
        frozenset(each) for each in combinations(range(graph.num_nodes), 3) if nx.is_connected(network.subgraph(each))
    }
    assert set(sets) == connected and len(sets) == len(connected)
    assert set(map(tuple, links.t().tolist())) == links_by_hand(sets, network, kind)
    assert links.size(1) == len(set(map(tuple, links.t().tolist())))


def test_the_kind_of_a_path_is_that_of_its_middle_whatever_the_numbers():
    path = graph_of(nx.path_graph(3))
    path.x = torch.eye(3)[[0, 1, 2]]
    middle_moved = graph_of(nx.path_graph(3))
    middle_moved.x = torch.eye(3)[[1, 0, 2]]
    found = []
    for graph in (path, *(permuted(path, seed) for seed in range(6)), middle_moved, graph_of(nx.complete_graph(3))):
        adjacency = adjacency_of(graph)
        members, _ = triple_sets(adjacency, "malkin")
        found.append(triple_kinds(adjacency, members, graph.x.argmax(1)).tolist())
    assert found[0] == [[0, 1, 2, 1]] and found[:7] == [found[0]] * 7
    assert found[7] == [[0, 1, 2, 0]] and found[8] == [[0, 0, 0, -1]]


@torch.no_grad()
def test_levels_are_what_the_formulas_say():
    graphs = awkward()
    network, store = make(KGNN, graphs)
    network.eval()
    graph = graphs[7]
    spaces, kinds = k_gnn_spaces(KGNN, graphs)

    def layers(h, links, convs):
        for conv in convs:
            mean = torch.zeros_like(h)
            for v in range(len(h)):
                senders = [s for s, t in links if t == v]
                mean[v] = h[senders].mean(0) if senders else 0
            own, other = conv.linear.weight[0].chunk(2, dim=1)
            h = elu(h @ own.t() + mean @ other.t() + conv.linear.bias[0])
        return h

    h = layers(graph.x.double(), graph.edge_index.t().tolist(), network.node_layers)
    found = [h.sum(0)]
    adjacency = adjacency_of(graph)
    for name, (members, links) in (("pairs", pair_sets(adjacency)), ("triples", triple_sets(adjacency, "malkin"))):
        kind = torch.eye(kinds[name])[spaces[7][name].values["kind"]].double()
        s = torch.stack([torch.cat([h[each].mean(0), kind[i]]) for i, each in enumerate(members)])
        found.append(layers(s, links.t().tolist(), network.set_layers[name]).mean(0))
    answer = torch.cat(found)
    for i, linear in enumerate(network.head):
        answer = linear.weight[0] @ answer + linear.bias[0]
        answer = elu(answer) if i < 2 else answer
    torch.testing.assert_close(network(store.batch(torch.tensor([[7]])))[0, 0], answer)


def test_it_separates_by_pairs_and_sets_of_three():
    assert separates(KGNN, hexagon_and_triangles())  # triangles are a kind of their own
    assert separates(KGNN, decalin_and_bicyclopentyl())
    assert not separates(KGNN, [graph_of(nx.petersen_graph()), permuted(graph_of(nx.petersen_graph()))])
    # In the rook's graph a node of a triangle can move along an edge so that a triangle is left, in the other it
    # cannot: local neighborhoods of sets see cliques of four, which 3-WL does not.
    assert separates(KGNN, rook_and_shrikhande())
