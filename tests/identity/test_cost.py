"""The size of an identity graph, known before it is built; the laws compare it with what is built."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from idgnn import identity_cost, identity_graph
from idgnn.identity import cone, cost
from idgnn.identity.adjacency import Adjacency


def star(leaves: int, inward: bool = True, outward: bool = True) -> Data:
    """Node 0 is the hub."""
    leaf, hub = torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.long)
    rays = [torch.stack([leaf, hub])] * inward + [torch.stack([hub, leaf])] * outward
    return Data(edge_index=torch.cat(rays, dim=1), num_nodes=leaves + 1)


def test_three_layers_on_an_undirected_graph_cost_two_rows_a_node_and_two_an_edge():
    """DESIGN.md: for K = 3 the identity graph has 2N + 2E rows."""
    for leaves in (1, 10, 100):
        assert identity_cost(star(leaves), num_layers=3).rows == 2 * (leaves + 1) + 2 * leaves


def test_the_cost_of_a_batch_is_the_sum():
    graphs = [star(3), star(5), star(1)]
    together = identity_cost(Batch.from_data_list(graphs), num_layers=4)
    single = [identity_cost(graph, num_layers=4) for graph in graphs]
    assert together.rows == sum(one.rows for one in single)
    assert together.edges == sum(one.edges for one in single)


def test_features_and_edge_attributes_count():
    bare = identity_cost(star(3), num_layers=2)
    data = star(3)
    data.x = torch.ones(4, 5, dtype=torch.float64)
    data.edge_attr = torch.ones(6, 2)
    data.edge_weight = torch.ones(6)
    loaded = identity_cost(data, num_layers=2)
    assert (loaded.rows, loaded.edges) == (bare.rows, bare.edges)
    assert loaded.bytes == bare.bytes + bare.rows * 5 * 8 + bare.edges * (2 * 4 + 4)


def test_a_hub_is_counted_without_being_built():
    """Four layers around a hub of 3,000 leaves: 9 million rows are counted, a few thousand at a time."""
    told = identity_cost(star(3000), num_layers=4)
    assert told.rows == 3001 + 3001 * 3001
    assert told.bytes > 2**28


def test_memory_is_bounded_where_many_colors_meet_at_a_hub(monkeypatch):
    """Each leaf reaches the hub, and the hub's million pairs of neighbors are never looked at together."""
    looked_at = []
    expand = Adjacency.expand

    def watch(self, nodes):
        found = expand(self, nodes)
        looked_at.append(found[0].numel())
        return found

    monkeypatch.setattr(Adjacency, "expand", watch)
    monkeypatch.setattr(cone, "CHUNK", 10_000)
    for outward in (False, True):
        identity_cost(star(1000, outward), num_layers=2)
    assert max(looked_at) <= 12_000


def reaches(edge_index: torch.Tensor, num_nodes: int) -> torch.Tensor:
    """Whether there is a route of any length from one node to another: `[num_nodes, num_nodes]`."""
    found = torch.eye(num_nodes, dtype=torch.double)
    step = found.index_put(tuple(edge_index), torch.ones(1, dtype=torch.double))
    for _ in range(num_nodes):
        found = (found @ step).clamp(max=1)
    return found > 0


@pytest.mark.parametrize("seed", range(20))
def test_with_more_rounds_than_steps_all_that_lies_on_any_route_has_a_row(seed):
    """And the time does not grow with the rounds: a million of them are as good as forty."""
    torch.manual_seed(seed)
    num_nodes, edge_index = 20, torch.randint(20, (2, 25))
    pairs = torch.randint(20, (2, 6))
    there = reaches(edge_index, num_nodes)
    expected = num_nodes
    for color in pairs[1].unique():
        expected += int((there[color] & there[:, pairs[0, pairs[1] == color]].any(1)).sum())
    data = Data(edge_index=edge_index, num_nodes=num_nodes)
    for num_layers in (2 * num_nodes, 10**6):
        assert identity_cost(data, num_layers, pairs).rows == expected


def test_no_nodes_cost_nothing():
    told = identity_cost(Data(num_nodes=0, edge_index=torch.empty(2, 0, dtype=torch.long)), num_layers=3)
    assert (told.rows, told.edges, told.bytes) == (0, 0, 0)


@pytest.mark.parametrize(
    ("data", "queries"),
    [
        (star(100), None),
        (star(100), torch.tensor([0])),
        (star(100, inward=False), torch.tensor([range(1, 101), [0] * 100])),  # in-degree 1, and yet a large cone
        (star(100, outward=False), torch.tensor([[0] * 100, range(1, 101)])),
        (star(100), torch.tensor([[3], [3]])),
    ],
    ids=["all nodes", "one root", "pairs out of a hub", "pairs into a hub", "one pair"],
)
def test_a_graph_that_does_not_fit_is_refused_before_it_is_built(monkeypatch, data, queries):
    told = identity_cost(data, 2, queries)
    monkeypatch.setattr(cost, "free_memory", lambda device: told.bytes)
    assert identity_graph(data, 2, queries).num_nodes == told.rows
    monkeypatch.setattr(cost, "free_memory", lambda device: told.bytes - 1)
    with pytest.raises(ValueError, match=r"would have .* rows and .* edges and take .*, but .* are free") as refused:
        identity_graph(data, 2, queries)
    message = str(refused.value)
    assert f"{told.rows:,} rows" in message
    assert f"{told.edges:,} edges" in message
    assert "KiB" in message
    for way_out in ("fewer layers", "queries=", "AddCycleCounts"):
        assert way_out in message


def test_free_memory_is_asked_of_the_machine():
    assert 2**20 < cost.free_memory(torch.device("cpu")) < 2**50
