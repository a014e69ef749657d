import networkx as nx
import pytest
import torch

from idgnn.experiments import memory
from idgnn.experiments.memory import LAYERS, measure_memory, num_states
from idgnn.graphs.load import load


@pytest.fixture(scope="module")
def found(data_dir):
    return measure_memory({"dataset": "CiteSeer", "roots": 16, "draws": 2}, seed=0, device="cpu")


def test_sharing_and_trimming_save_rows(found):
    rows = found["rows"]
    assert rows["shared-trimmed"] < rows["shared"] < rows["full-gcn-ego"]
    assert rows["shared-trimmed"] <= rows["full-gcn"] < rows["full-gcn-ego"]


def test_the_overhead_is_that_of_the_bytes(found):
    for name, share in found["overhead"].items():
        assert found["bytes"][name] == pytest.approx((1 + share) * found["bytes"]["shared"])
    assert not found["measured"]


def test_rows_are_the_nodes_of_the_ego_networks(data_dir):
    graph = load("CiteSeer").graphs[0]
    roots = torch.tensor([0, 7, 100, 101, 2000])
    known = nx.Graph(graph.edge_index.t().tolist())
    known.add_nodes_from(range(graph.num_nodes))
    egos = [set(nx.ego_graph(known, root, LAYERS)) for root in roots.tolist()]
    union = set().union(*egos)
    plain, full = (memory._network(identity, graph.x.size(1), "cpu") for identity in ("none", "full"))
    assert num_states(memory._shared(plain, graph, roots)) == (LAYERS + 1) * len(union)
    assert num_states(memory._full(full, graph, roots, ego=True)) == (LAYERS + 1) * sum(map(len, egos))
    balls = [set().union(*(nx.ego_graph(known, root, radius) for root in roots.tolist())) for radius in range(4)]
    assert num_states(memory._trimmed(plain, graph, roots)) == sum(map(len, balls))


@torch.no_grad()
def test_all_ways_to_compute_a_network_agree(data_dir):
    graph = load("CiteSeer").graphs[0]
    roots = torch.tensor([3, 50, 51, 1234])
    plain, full = (memory._network(identity, graph.x.size(1), "cpu").eval() for identity in ("none", "full"))
    every = plain(plain.encoder.prepare(graph.x, graph.edge_index), graph.x, 1)[roots]
    for ready in (memory._shared(plain, graph, roots), memory._trimmed(plain, graph, roots)):
        torch.testing.assert_close(plain(memory._compact(ready), graph.x, 1), every, rtol=1e-4, atol=1e-5)
    ego, ours = (full(memory._compact(memory._full(full, graph, roots, ego=ego)), graph.x, 1) for ego in (True, False))
    torch.testing.assert_close(ego, ours, rtol=1e-4, atol=1e-5)


def test_more_roots_than_nodes_are_refused(data_dir):
    with pytest.raises(ValueError, match="the nodes of the graph"):
        measure_memory({"dataset": "CiteSeer", "roots": 10**6}, seed=0, device="cpu")
