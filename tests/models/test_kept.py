"""What a model remembers of a graph never outlives the graph, and is never what it remembers of another."""

import copy
import gc
import weakref

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from idgnn import IDGNN, identity_graph
from idgnn.identity.schedule_builder import make_schedule
from tests.models.small_graphs import IDENTITIES, IN, PAIRS, ladder, network


def fresh(model: IDGNN, data: Data, **options) -> torch.Tensor:
    """The answer of a copy that has never seen a graph."""
    return copy.deepcopy(model)(data.x, data.edge_index.clone(), **options)


@pytest.fixture(params=[(conv, identity) for conv in ("gcn", "sage", GCNConv) for identity in IDENTITIES], ids=str)
def model(request):
    conv, identity = request.param
    return network(conv, identity).eval()


def test_edges_changed_in_place_are_seen(model):
    data = ladder()
    before = model(data.x, data.edge_index)
    data.edge_index[:, 2] = torch.tensor([7, 0])
    after = model(data.x, data.edge_index)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, fresh(model, data))
    data.edge_index.copy_(ladder().edge_index)
    torch.testing.assert_close(model(data.x, data.edge_index), before)


def test_edges_changed_through_a_view_are_seen(model):
    data = ladder()
    model(data.x, data.edge_index)
    data.edge_index[0][2], data.edge_index[1][2] = 7, 0
    torch.testing.assert_close(model(data.x, data.edge_index), fresh(model, data))


def test_another_graph_is_another_graph(model):
    data, other = ladder(), ladder(seed=3)
    other.edge_index = other.edge_index[:, torch.randperm(other.num_edges)]
    other.edge_index[:, 0] = torch.tensor([0, 7])
    model(data.x, data.edge_index)
    torch.testing.assert_close(model(other.x, other.edge_index), fresh(model, other))
    torch.testing.assert_close(model(data.x, data.edge_index), fresh(model, data))


def test_a_tensor_in_the_place_of_one_that_is_gone_is_another(model):
    for seed in range(5):
        data = ladder(rungs=2 + seed)
        torch.testing.assert_close(model(data.x, data.edge_index), fresh(model, data))
        del data


def test_more_isolated_nodes_on_the_same_edges_are_seen(model):
    data = ladder()
    model(data.x, data.edge_index)
    data.x = torch.randn(11, IN)
    torch.testing.assert_close(model(data.x, data.edge_index), fresh(model, data))
    data.x = torch.randn(9, IN)
    torch.testing.assert_close(model(data.x, data.edge_index), fresh(model, data))


def test_queries_and_engines_do_not_mix():
    data = ladder()
    model = network("gin").eval()
    for _ in range(2):
        for engine in ("trimmed", "graph", "ego"):
            for queries in (None, torch.tensor([3]), PAIRS, PAIRS.flip(0)):
                out = model(data.x, data.edge_index, queries=queries, engine=engine)
                torch.testing.assert_close(out, fresh(model, data, queries=queries, engine=engine))


@pytest.mark.parametrize("engine", ["trimmed", "graph"])
@pytest.mark.parametrize("share", [copy.copy, lambda graph: graph], ids=["shallow copy", "same graph"])
def test_other_queries_on_the_same_identity_graph_are_seen(share, engine):
    """Mini-batches of queries: the rows stay, `query_row` is cut. PyG's transforms copy shallowly all the time."""
    data = ladder()
    model = network().eval()
    graph = identity_graph(data, 3)
    everyone = model(data.x, data.edge_index, graph=graph, engine=engine)
    part = share(graph)
    part.query_row = graph.query_row[2:5]
    torch.testing.assert_close(model(data.x, data.edge_index, graph=part, engine=engine), everyone[2:5])
    part.query_row = part.query_row.clone()
    part.query_row[0] = part.query_row[1]
    torch.testing.assert_close(model(data.x, data.edge_index, graph=part, engine=engine), everyone[[3, 3, 4]])


def test_identity_graphs_of_equal_size_do_not_mix():
    data = ladder()
    model = network("gat").eval()
    for queries in (PAIRS, PAIRS.flip(0), PAIRS.flip(1)):
        graph = identity_graph(data, 3, queries)
        out = model(data.x, data.edge_index, graph=graph)
        torch.testing.assert_close(out, fresh(model, data, queries=queries))


def test_a_graph_that_is_gone_is_forgotten(model):
    """A training run sees thousands of batches; what was kept for each must go with it."""
    kept = model._planner.kept._entries
    data = ladder()
    seen = weakref.ref(data.edge_index)
    model(data.x, data.edge_index)
    del data
    gc.collect()
    assert seen() is None
    assert len(kept) == 0


def test_an_identity_graph_that_is_gone_is_forgotten():
    model = network()
    data = ladder()
    graph = identity_graph(data, 3)
    seen = weakref.ref(graph.edge_index)
    model(data.x, data.edge_index, graph=graph)
    del graph
    gc.collect()
    assert seen() is None
    assert len(model._planner.kept._entries) == 0


def test_it_is_worked_out_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "idgnn.models.planner.make_schedule",
        lambda *given, **options: calls.append(given) or make_schedule(*given, **options),
    )
    data = ladder()
    model = network("gin")
    for _ in range(3):
        model(data.x, data.edge_index)
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["node", "edge", "plain_row"])
def test_a_plan_is_made_again_when_its_identity_graph_was_changed_in_place(name):
    """Written to, even with the same values: the plan is not trusted any more."""
    data, model = ladder(), network("gin").eval()
    graph = identity_graph(data, 3)
    before = model(data.x, data.edge_index, graph=graph)
    plan = model.prepare(data.x, data.edge_index, graph=graph).plan
    assert model.prepare(data.x, data.edge_index, graph=graph).plan is plan
    graph[name].copy_(graph[name].clone())
    again = model.prepare(data.x, data.edge_index, graph=graph).plan
    assert again is not plan
    assert torch.equal(model(data.x, data.edge_index, graph=graph), before)
