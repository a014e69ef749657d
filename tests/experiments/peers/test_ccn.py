from itertools import product

import networkx as nx
import torch

from idgnn.experiments.peers.ccn import CONTRACTIONS, ROUNDS, ccn_spaces, contract_1d, contract_2d, fields_of, promoted
from idgnn.experiments.peers.k_gnn import adjacency_of
from idgnn.experiments.peers.packed import PackedGraphs
from tests.experiments.peers.laws import separates, small
from tests.experiments.peers.small_graphs import awkward, decalin_and_bicyclopentyl, graph_of, hexagon_and_triangles


def test_fields_are_balls():
    graph = nx.gnp_random_graph(12, 0.2, seed=3)
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    for level, field in enumerate(fields_of(adjacency_of(graph_of(graph)), 100)):
        for v, w in product(range(12), repeat=2):
            assert bool(field[v, w]) == (distance[v].get(w, 99) <= level)


def test_a_field_that_would_be_too_large_stops_at_the_shell_before():
    star = adjacency_of(graph_of(nx.star_graph(6)))  # the hub is node 0
    assert [each.sum(1).tolist() for each in fields_of(star, 6)] == [[1] * 7, [1, 2, 2, 2, 2, 2, 2], [1] + [2] * 6]


def test_states_are_promoted_entry_by_entry():
    graphs = awkward()
    torch.manual_seed(0)
    for order in (1, 2):
        store = PackedGraphs(ccn_spaces(graphs, order), "cpu")
        batch = store.batch(torch.tensor([[7, 3]]))
        before, now = (
            [(i, sorted(row.nonzero().flatten().tolist())) for i in (7, 3) for row in fields(graphs[i])[level]]
            for level in (1, 2)
        )
        width = batch["nodes"].values["inside 1"].size(1)
        state = torch.zeros(len(before), *[width] * order, 2)
        for v, (_, field) in enumerate(before):
            real = [range(len(field))] * order
            for place in product(*real):
                state[(v, *place)] = torch.randn(2)
        t = promoted(state, batch, 2, order)
        start = {7: 0, 3: graphs[7].num_nodes}
        for v, (which, field) in enumerate(now):
            for place in product(range(t.size(1)), repeat=order + 1):
                expected = torch.zeros(2)
                if max(place) < len(field):
                    a, *rest = (field[i] for i in place)
                    earlier = before[start[which] + a][1]
                    if all(w in earlier for w in rest):
                        expected = state[(start[which] + a, *(earlier.index(w) for w in rest))]
                assert torch.equal(t[(v, *place)], expected)


def fields(graph):
    return fields_of(adjacency_of(graph), 100)


def test_contractions_by_loops():
    torch.manual_seed(0)
    p = 3
    t, adjacency = torch.randn(1, p, p, p, 1).double(), torch.randn(1, p, p).double()
    found = contract_2d(t, adjacency, torch.tensor([1]))[0]  # [p, p, 18]
    # (kept pair, equalities among a b c d e), in the words of the source
    rules = [
        "ab", "ad", "bc", "bd", "de", "ab c=d", "ab d=e", "ad b=c", "ad b=e", "bc a=d", "bd a=c", "bd a=e", "bd c=e",
        "de a=b", "de b=c", "ad b=c=e", "bd a=c=e", "de a=b=c",
    ]  # fmt: skip
    assert len(rules) == len(CONTRACTIONS) == found.size(-1) and ROUNDS == 2
    for number, rule in enumerate(rules):
        kept, *equal = rule.split()
        expected = torch.zeros(p, p).double()
        for values in product(range(p), repeat=5):
            at = dict(zip("abcde", values, strict=True))
            if all(len({at[name] for name in each.split("=")}) == 1 for each in equal):
                term = t[0, at["a"], at["b"], at["c"], 0] * adjacency[0, at["d"], at["e"]]
                expected[at[kept[0]], at[kept[1]]] += term
        torch.testing.assert_close(found[..., number], expected)


def test_contractions_are_covariant():
    torch.manual_seed(0)
    order, size = torch.randperm(4), torch.tensor([4])
    t, adjacency = torch.randn(1, 4, 4, 4, 2), torch.randn(1, 4, 4)
    moved = contract_2d(t[:, order][:, :, order][:, :, :, order], adjacency[:, order][:, :, order], size)
    torch.testing.assert_close(moved, contract_2d(t, adjacency, size)[:, order][:, :, order])
    t = t[..., 0, :]
    torch.testing.assert_close(contract_1d(t[:, order][:, :, order], size), contract_1d(t, size)[:, order])


def test_contractions_of_vectors_by_hand():
    t = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]).unsqueeze(-1)
    found = contract_1d(t, torch.tensor([2]))[0] * 2
    assert found.tolist() == [[3, 4, 1, 5, 10], [7, 6, 4, 5, 10]]


def test_what_is_separated():
    """Two rounds see cycles of length three, but none of five and six."""
    for name in ("ccn-1d", "ccn-2d"):
        assert separates(small(name), hexagon_and_triangles())
        assert not separates(small(name), [graph_of(nx.cycle_graph(6)), graph_of(nx.cycle_graph(6))])
    assert separates(small("ccn-2d"), decalin_and_bicyclopentyl())
