"""Batches of queries from a large graph: exact without caps, and what is drawn with them comes from the seed alone."""

import pickle
import warnings
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GAT, GCN, GCNConv, GraphConv, TransformerConv

from idgnn import IDGNN, RootLoader, identity_aware
from idgnn.identity.adjacency import incoming
from idgnn.identity.cost import TooLargeError
from idgnn.identity.identity_graph import UnreachedColorWarning
from idgnn.identity.neighborhood import Caps, neighborhood
from idgnn.models.large_graph import LargeGraph
from tests.laws.graphs import EDGE_DIM, pairs, roots
from tests.laws.networks import CHANNELS, KINDS, assert_same, encoder, randomized

# Newer versions of Python warn of what pytest-xdist makes of every process.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

IDENTITIES = ("none", "fast", "full")


def only_taken(kind, data: Data) -> Data:
    """Without the edge attributes that the layer does not take: a loader uses what a graph has."""
    return Data(x=data.x, edge_index=data.edge_index, **kind.edge(data))


def expected(model: IDGNN, kind, data: Data, queries: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColorWarning)
        return model(data.x, data.edge_index, queries=queries, **kind.edge(data))


def sparse(size: int, num_edges: int, directed: bool, seed: int = 0) -> Data:
    """Far larger than the neighborhood of a node; some nodes are isolated, and there are no repeated self-loops."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(size, (2, num_edges), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    edges = edges if directed else torch.cat([edges, edges.flip(0)], dim=1)
    number = edges.size(1)
    return Data(
        x=torch.randn(size, CHANNELS, generator=generator, dtype=torch.double),
        edge_index=edges,
        edge_weight=torch.rand(number, generator=generator, dtype=torch.double) + 0.5,
        edge_attr=torch.randn(number, EDGE_DIM, generator=generator, dtype=torch.double),
    )


def ring(size: int) -> Data:
    node = torch.arange(size)
    edge_index = torch.stack([torch.cat([node, node.roll(1)]), torch.cat([node.roll(1), node])])
    return Data(x=torch.randn(size, 1), edge_index=edge_index)


def star(leaves: int) -> Data:
    ray = torch.stack([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.long)])
    return Data(x=torch.ones(leaves + 1, 1), edge_index=torch.cat([ray, ray.flip(0)], dim=1))


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_answers_are_those_on_the_whole_graph_however_awkward_it_is(name, identity, data):
    """One node, no edges, self-loops, duplicates, one direction, hubs, cliques, several components."""
    kind = KINDS[name]
    graph = data.draw(kind.graphs())
    model = encoder(kind, data.draw(st.integers(1, 5)), identity)
    queries = data.draw(st.one_of(roots(graph.num_nodes), pairs(graph.num_nodes)))
    found = model.run(LargeGraph(model, only_taken(kind, graph)).prepare(queries))
    assert_same(found, expected(model, kind, graph, queries), 1e-9)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("name", KINDS)
def test_answers_are_those_on_the_whole_graph_of_which_a_batch_sees_a_part(name, identity, directed):
    kind, graph = KINDS[name], sparse(60, 60, directed)
    for num_layers in range(1, 6):
        model = encoder(kind, num_layers, identity)
        large = LargeGraph(model, only_taken(kind, graph))
        for queries in (torch.randint(60, (6,)), torch.randint(60, (2, 6))):
            ready, whole = large.prepare(queries), expected(model, kind, graph, queries)
            assert_same(model.run(ready), whole, 1e-9)
            # Caps that nothing reaches change nothing.
            assert_same(model.run(large.prepare(queries, (100, -1, 60, 60, 60)[:num_layers], seed=1)), whole, 1e-9)
            assert num_layers > 2 or ready.x.size(0) < 60


@pytest.mark.parametrize("num_layers", range(1, 6))
def test_in_training_the_rows_are_those_of_the_whole_graph_too(num_layers):
    """So BatchNorm of ID-GNN-Full takes its statistics over the same rows."""
    kind, graph = KINDS["gin"], sparse(60, 90, directed=False)
    model = encoder(kind, num_layers).train()
    large = LargeGraph(model, only_taken(kind, graph))
    for queries in (torch.randint(60, (8,)), torch.randint(60, (2, 8))):
        assert_same(model.run(large.prepare(queries)), expected(model, kind, graph, queries))


def test_every_query_comes_once_with_its_place():
    graph, asked = ring(50), torch.randint(50, (2, 23))
    model = IDGNN(1, 8, 4).eval()
    loader = RootLoader(graph, model, asked, batch_size=5, shuffle=True)
    batches = list(loader)
    assert len(loader) == len(batches) == 5
    index = torch.cat([batch.index for batch in batches])
    assert sorted(index.tolist()) == list(range(23)) and index.tolist() != list(range(23))
    out = torch.cat([model.run(batch.ready) for batch in batches])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColorWarning)
        whole = model(graph.x, graph.edge_index, queries=asked)
    assert torch.allclose(out, whole[index], atol=1e-6)
    assert torch.equal(torch.cat([batch.queries for batch in batches], dim=1), asked[:, index])


def test_without_queries_all_nodes_come_in_order():
    graph, model = ring(50), IDGNN(1, 8, 4, identity="fast").eval()
    out = torch.cat([model.run(batch.ready) for batch in RootLoader(graph, model, batch_size=16)])
    assert torch.allclose(out, model(graph.x, graph.edge_index), atol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_queries_are_no_batches(shape):
    loader = RootLoader(ring(5), IDGNN(1, 8, 4), torch.empty(shape, dtype=torch.long))
    assert len(loader) == 0 and list(loader) == []


def test_a_graph_without_features_gets_the_feature_1():
    graph, model = ring(12), IDGNN(1, 8, 4).eval()
    (batch,) = RootLoader(Data(edge_index=graph.edge_index, num_nodes=12), model)
    assert torch.allclose(model.run(batch.ready), model(torch.ones(12, 1), graph.edge_index), atol=1e-6)


def test_several_graphs_are_one_with_the_ids_of_a_batch():
    graphs, model = [ring(7), star(5), Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0).long())], IDGNN(1, 8, 4)
    whole = Batch.from_data_list(graphs)
    (batch,) = RootLoader(graphs, model.eval())
    assert torch.allclose(model.run(batch.ready), model(whole.x, whole.edge_index), atol=1e-6)


@pytest.mark.parametrize("identity", IDENTITIES)
def test_a_batch_does_not_grow_with_the_graph(identity):
    sizes = set()
    for size in (100, 10_000):
        model = IDGNN(1, 8, 4, 3, identity=identity, cycle_length=4)
        ready = LargeGraph(model, ring(size)).prepare(torch.tensor([5, 40]))
        sizes.add((ready.x.size(0), *(each.plain.source.numel() for each in ready.plan.rounds)))
    assert len(sizes) == 1 and sizes.pop()[0] == 14


def test_a_hub_is_seen_by_its_leaves():
    graph, model = star(3000), IDGNN(1, 8, 4, 3).eval()
    queries = torch.tensor([1, 7, 0])
    found = model.run(LargeGraph(model, graph).prepare(queries))
    assert torch.allclose(found, model(graph.x, graph.edge_index, queries=queries), atol=1e-6)


def test_what_would_not_fit_is_refused_so_that_batches_can_be_halved(monkeypatch):
    model = IDGNN(1, 8, 4)
    large = LargeGraph(model, star(100))
    monkeypatch.setattr("idgnn.identity.cost.free_memory", lambda device: 1000)
    with pytest.raises(TooLargeError, match=r"the batch has .* rows .* Use smaller batches, or draw"):
        large.prepare(torch.tensor([1]))


def drawn(num_leaves: int, most: int, seed: int) -> Tensor:
    """The in-neighbors of the hub of a star that a cap leaves."""
    graph = star(num_leaves)
    into = incoming(graph.edge_index, num_leaves + 1)
    near = neighborhood(into, torch.tensor([0]), 1, Caps((most,), torch.Generator().manual_seed(seed), loops=False))
    assert torch.equal(graph.edge_index[1, near.edge], torch.zeros_like(near.edge))
    source = graph.edge_index[0, near.edge]
    assert torch.equal(near.node[near.into.neighbor], source)
    assert float(near.missing[0]) == max(num_leaves / most, 1)
    return source


@pytest.mark.parametrize(("leaves", "most"), [(10, 3), (10, 9), (10, 10), (4, 10), (1, 1), (2000, 15)])
def test_a_cap_leaves_so_many_different_neighbors(leaves, most):
    source = drawn(leaves, most, seed=3)
    assert source.numel() == source.unique().numel() == min(leaves, most)


def test_all_sets_of_neighbors_are_drawn_equally_often():
    times = Counter(tuple(drawn(5, 2, seed).tolist()) for seed in range(2000))
    assert len(times) == 10
    # Each of the ten sets 200 times on average, with a standard deviation of 13.4.
    assert all(abs(count - 200) < 5 * 13.4 for count in times.values())


def test_self_loops_of_the_layers_stay_and_are_not_counted():
    model = IDGNN(1, 8, 4, 1, "gcn", "none")
    ready = LargeGraph(model, star(40)).prepare(torch.tensor([0, 3]), fanout=(5,), seed=1)
    (only,) = ready.plan.rounds
    assert sorted(only.plain.ptr.diff().tolist()) == [
        2,
        6,
    ]  # a leaf: the hub and itself, the hub: 5 and itself
    for target, previous in enumerate(only.previous.tolist()):
        assert previous in only.plain.source[only.plain.ptr[target] : only.plain.ptr[target + 1]].tolist()


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", ["sage-max", "gat", "gin", "gine"])
def test_the_network_runs_exactly_on_the_graph_that_was_drawn(name, directed):
    kind, graph = KINDS[name], sparse(40, 200, directed)
    for num_layers in range(1, 6):
        model, fanout = encoder(kind, num_layers), (4, 3, 2, 2, 2)[:num_layers]
        large = LargeGraph(model, only_taken(kind, graph))
        caps = Caps(fanout, torch.Generator().manual_seed(7), large.self_loops)
        start = torch.tensor([3, 17, 28])
        near = neighborhood(large.graph.into, start, num_layers, caps)
        target = torch.repeat_interleave(near.into.degree)
        its = Data(x=graph.x[near.node], edge_index=torch.stack([near.into.neighbor, target]))
        if name == "gine":
            its.edge_attr = graph.edge_attr[near.edge]
        assert bool((near.missing > 1).any())
        for queries in (start, torch.stack([start, near.node[[-1, 0, 1]]])):
            found = model.run(large.prepare(queries, fanout, seed=7))
            numbered = near.number(queries.flatten()).view_as(queries)
            assert_same(found, expected(model, kind, its, numbered), 1e-9)


def test_gcn_sums_over_what_was_drawn_are_right_on_average():
    graph = star(40)
    model = IDGNN(1, 8, 4, 1, "gcn", "none")
    large = LargeGraph(model, graph)
    whole = large.prepare(torch.tensor([0])).weight.sum()
    sums = torch.stack([large.prepare(torch.tensor([0]), (5,), seed).weight.sum() for seed in range(20)])
    assert torch.allclose(sums, whole.expand(20), rtol=1e-5)  # all leaves weigh the same


def same(one, other) -> bool:
    """Whether two lists of batches are equal, bit for bit."""
    return len(one) == len(other) and all(
        torch.equal(a.index, b.index)
        and torch.equal(a.queries, b.queries)
        and torch.equal(a.ready.x, b.ready.x)
        and torch.equal(a.ready.weight, b.ready.weight)
        and all(
            torch.equal(getattr(r, kind).source, getattr(s, kind).source)
            and torch.equal(getattr(r, kind).ptr, getattr(s, kind).ptr)
            for r, s in zip(a.ready.plan.rounds, b.ready.plan.rounds, strict=True)
            for kind in ("plain", "colored")
        )
        for a, b in zip(one, other, strict=True)
    )


def dense() -> Data:
    return Data(x=torch.linspace(0, 1, 40).view(-1, 1), edge_index=sparse(40, 400, directed=False).edge_index)


def test_the_seed_decides_the_batches_and_the_draws():
    graph, model = dense(), IDGNN(1, 8, 4, 2)

    def loader(seed):
        return RootLoader(graph, model, batch_size=16, fanout=(4, 3), shuffle=True, seed=seed)

    one, again, other = loader(1), loader(1), loader(2)
    first, second = list(one), list(one)
    assert same(first, list(again)) and same(second, list(again))
    assert not same(first, second) and not same(first, list(other))
    one.epoch = 0
    assert same(first, list(one))


@pytest.mark.parametrize("identity", ["full", "none"])
def test_worker_processes_make_the_same_batches(identity):
    graph, model = dense(), IDGNN(1, 8, 4, 2, identity=identity)
    pairs = torch.randint(40, (2, 50), generator=torch.Generator().manual_seed(0))
    here, there = (
        RootLoader(graph, model, pairs, batch_size=16, fanout=(4, 3), shuffle=True, num_workers=workers)
        for workers in (0, 2)
    )
    before = torch.get_rng_state()
    for _ in range(2):
        ours, theirs = list(here), list(there)
        assert same(ours, theirs)
        assert all(
            torch.equal(model.eval().run(a.ready), model.run(b.ready)) for a, b in zip(ours, theirs, strict=True)
        )
    iterator = iter(there)
    next(iterator)  # and a pass that was not finished does not disturb the next
    here.epoch = there.epoch
    assert same(list(here), list(there))
    assert torch.equal(before, torch.get_rng_state()), "the network's random numbers are not touched"


def test_what_workers_hold_can_be_sent_to_a_new_process():
    graph, model = dense(), IDGNN(1, 8, 4, 2).eval()
    large = LargeGraph(model, graph)
    sent = pickle.loads(pickle.dumps(large))
    queries = torch.tensor([3, 1, 4])
    assert torch.equal(model.run(large.prepare(queries)), model.run(sent.prepare(queries)))


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize(
    "queries", [torch.tensor([3, 1, 4]), torch.tensor([[3, 1, 4], [1, 5, 3]])], ids=["nodes", "pairs"]
)
def test_moving_a_batch_changes_nothing(identity, queries):
    graph, model = dense(), IDGNN(1, 8, 4, 2, identity=identity).eval()
    (batch,) = RootLoader(graph, model, queries)
    moved = batch.to("cpu")
    assert moved.ready.x is not batch.ready.x
    out = model.run(batch.ready)
    assert torch.equal(model.run(moved.ready), out)
    # On a device without memory, anything that was left behind would be in the way.
    assert model.to("meta").run(batch.to("meta").ready).shape == out.shape


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0, expected a whole number of at least 1: the queries in a batch"),
        ({"num_workers": -1}, "num_workers is -1"),
        ({"fanout": None}, r"fanout is None, expected the most in-neighbors of a node for each round"),
        ({"fanout": (5,)}, r"fanout is \[5\], but the network has 3 rounds .* for example \[15, 10, 5\]"),
        ({"fanout": (5, 0, 5)}, r"fanout is \[5, 0, 5\], expected whole numbers of at least 1, or -1 for all"),
        ({"queries": torch.tensor([7])}, "the queried nodes name node 7, but the graph has 5 nodes"),
        ({"queries": torch.tensor([[7], [0]])}, "the query pairs name node 7"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        RootLoader(ring(5), IDGNN(1, 8, 4), **options)


@pytest.mark.parametrize("pairs", [False, True], ids=["nodes", "pairs"])
@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", [GraphConv, GCNConv, TransformerConv])
def test_layers_that_are_not_ours_answer_as_on_the_whole_graph(conv, identity, pairs):
    graph = sparse(40, 70, directed=True)
    data = Data(x=graph.x, edge_index=graph.edge_index)
    model = randomized(IDGNN(CHANNELS, 8, 4, 2, conv, identity, cycle_length=4)).eval()
    queries = torch.randint(40, (2, 15) if pairs else (15,), generator=torch.Generator().manual_seed(0))
    found = torch.cat([model.run(batch.ready) for batch in RootLoader(data, model, queries, batch_size=4)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColorWarning)
        assert_same(found, model(data.x, data.edge_index, queries=queries), 1e-9)


@pytest.mark.parametrize("module", [GCN(CHANNELS, 8, 2), GAT(CHANNELS, 8, 3, 4)], ids=["gcn", "gat"])
def test_wrapped_models_answer_as_on_the_whole_graph(module):
    graph = sparse(40, 70, directed=False)
    model = randomized(identity_aware(module)).eval()
    taken = {"edge_weight": graph.edge_weight} if model.takes("edge_weight") else {}
    expected = model(graph.x, graph.edge_index, **taken)
    data = Data(x=graph.x, edge_index=graph.edge_index, **taken)
    found = torch.cat([model.run(batch.ready) for batch in RootLoader(data, model, batch_size=7)])
    assert_same(found, expected, 1e-9)
    for memory in (None, "200KiB"):
        assert_same(model.embed(data, memory=memory), expected, 1e-9)


@pytest.mark.parametrize("data", [None, torch.ones(3, 1), [torch.ones(3, 1)], {"x": 1}, []], ids=str)
def test_what_is_no_graph_is_refused(data):
    with pytest.raises(ValueError, match=r"expected a torch_geometric\.data\.Data or a list of them"):
        RootLoader(data, IDGNN(1, 8, 4))


@pytest.mark.parametrize("model", ["gcn", GraphConv(1, 8)], ids=["name", "layer"])
def test_what_is_no_network_is_refused(model):
    with pytest.raises(ValueError, match=r"expected an IDGNN or a model that idgnn\.identity_aware returned"):
        RootLoader(ring(5), model)


@pytest.mark.parametrize("queries", [[3, 1, 4], [[3, 1], [0, 2]]], ids=["nodes", "pairs"])
def test_queries_may_be_a_list_or_an_array(queries):
    graph, model = ring(5), IDGNN(1, 8, 4).eval()
    results = [
        model.run(next(iter(RootLoader(graph, model, given))).ready)
        for given in (torch.tensor(queries), queries, np.array(queries))
    ]
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
    with pytest.raises(ValueError, match=r"queries is \['a'\], expected whole numbers"):
        RootLoader(graph, model, ["a"])


def test_the_batch_itself_is_not_what_a_network_runs_on():
    model = IDGNN(1, 8, 4)
    with pytest.raises(ValueError, match=r"run was given a RootBatch, expected what prepare returns; .*batch\.ready"):
        model.run(next(iter(RootLoader(ring(5), model))))
