"""Identity graphs of heterogeneous graphs: what they hold, and what is refused."""

import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from idgnn import (
    HeteroIdentityGraph,
    ToIdentityGraph,
    identity_cost,
    identity_graph,
    reachable,
)
from tests.models.hetero.races import races


def test_batches_keep_queries_and_come_apart_again():
    data = races()
    graphs = [identity_graph(data, 4, ("driver", ids)) for ids in ([0], [1, 2], [4])]
    batch = Batch.from_data_list(graphs)
    assert batch["driver"].colored[batch.query_row].all()
    assert batch["driver"].node[batch.query_row].tolist() == [0, 5 + 1, 5 + 2, 10 + 4]
    for part, graph in zip(batch.to_data_list(), graphs, strict=True):
        assert isinstance(part, HeteroIdentityGraph)
        assert torch.equal(part.query_row, graph.query_row)
        for kind in graph.node_types:
            assert torch.equal(part[kind].plain_row, graph[kind].plain_row)
            assert torch.equal(part[kind].node, graph[kind].node)
        for kind in graph.edge_types:
            assert torch.equal(part[kind].edge_index, graph[kind].edge_index)
            assert torch.equal(part[kind].edge, graph[kind].edge)
            assert torch.equal(part[kind].plain_edge, graph[kind].plain_edge)
    loaded = next(iter(DataLoader(graphs, batch_size=3)))
    assert torch.equal(loaded.query_row, batch.query_row)


def test_the_identity_graph_of_a_batch_says_which_graph_a_query_belongs_to():
    first, second = races(), races()
    second["driver"].x = second["driver"].x + 1
    batch = Batch.from_data_list([first, second])
    graph = identity_graph(batch, 4, ("driver", [0, 7, 9]))
    assert graph["driver"].batch[graph.query_row].tolist() == [0, 1, 1]
    assert torch.equal(graph["driver"].x[graph.query_row], batch["driver"].x[[0, 7, 9]])
    assert graph["driver"].colored.sum() == 3
    alone = identity_graph(second, 4, ("driver", [2, 4]))
    for kind in first.node_types:
        both = identity_graph(first, 4, ("driver", [0]))[kind].num_nodes + alone[kind].num_nodes
        assert graph[kind].num_nodes == both


def test_transform_by_type_and_by_attribute():
    data = races()
    graph = ToIdentityGraph(num_layers=3, queries="driver")(data)
    assert graph.query_row.numel() == 5 and graph.read_type == graph.root_type == "driver"
    data.asked = ("driver", [2])
    assert ToIdentityGraph(num_layers=3, queries="asked")(data).query_row.numel() == 1
    with pytest.raises(ValueError, match=r"no attribute 'pilot' .* the node types"):
        ToIdentityGraph(num_layers=3, queries="pilot")(data)


def test_types_without_features_and_other_attributes():
    data = races()
    del data["race"].x
    data["race"].num_nodes = 7
    data["driver"].y = torch.arange(5)
    data["result", "of", "driver"].edge_weight = torch.rand(20)
    graph = identity_graph(data, 4, "driver")
    assert "x" not in graph["race"] and graph["race"].num_nodes > 7
    assert torch.equal(graph["driver"].y, data["driver"].y)
    kind = "result", "of", "driver"
    assert torch.equal(graph[kind].edge_weight, data[kind].edge_weight[graph[kind].edge])
    cost = identity_cost(data, 4, "driver")
    held = 0
    for store in graph.stores:
        for key, value in store.items():
            if key in ("node", "colored", "arrival", "x", "edge_index", "edge", "edge_weight"):
                held += value.numel() * value.element_size()
    assert cost.bytes == held


def test_an_empty_type_is_asked_for():
    data = races()
    data["driver"].x = torch.zeros(0, 3)
    for kind in ("result", "of", "driver"), ("driver", "rev_of", "result"):
        data[kind].edge_index = torch.zeros(2, 0, dtype=torch.long)
    graph = identity_graph(data, 4, "driver")
    assert graph.query_row.numel() == 0 and graph["result"].num_nodes == 20
    assert identity_cost(data, 4, "driver").rows == 30


def test_bad_graphs_get_a_sentence():
    data = races()
    with pytest.raises(ValueError, match=r"'circuit' is 3 message steps .*driver -> result -> race -> circuit"):
        identity_graph(data, 2, (("circuit", [0]), ("driver", [0])))
    with pytest.raises(ValueError, match="Use at least 3 layers"):
        reachable(data, "driver", "circuit", 2)
    with pytest.raises(ValueError, match="an identity graph already"):
        identity_graph(identity_graph(data, 2, "driver"), 2, "driver")
    lonely = races()
    lonely["team"].x = torch.ones(2, 1)
    with pytest.raises(ValueError, match="'team' has no edges of any type"):
        identity_graph(lonely, 2, "team")
    with pytest.raises(ValueError, match="no route of edge types leads from 'driver' to 'team'"):
        identity_graph(lonely, 2, (("team", [0]), ("driver", [0])))
    broken = races()
    broken["result", "of", "driver"].edge_index = torch.tensor([[0], [5]])
    with pytest.raises(ValueError, match=r"names node 5 of 'driver', which has 5 nodes"):
        identity_graph(broken, 2, "driver")
    broken["result", "of", "pilot"].edge_index = torch.tensor([[0], [0]])
    with pytest.raises(ValueError, match=r"'pilot' has neither x nor num_nodes|names the node type 'pilot'|names node"):
        identity_graph(broken, 2, "driver")
    uncounted = races()
    del uncounted["race"].x
    with pytest.raises(ValueError, match="'race' has neither x nor num_nodes"):
        identity_graph(uncounted, 2, "driver")
    taken = races()
    taken["driver"].colored = torch.ones(5)
    with pytest.raises(ValueError, match="has an attribute 'colored', and so has every identity graph"):
        identity_graph(taken, 2, "driver")
