"""Identity graphs, counts and snapshots of heterogeneous graphs: what they hold, and what is refused."""

import pytest
import torch
from torch_geometric.data import Batch, HeteroData
from torch_geometric.loader import DataLoader

from idgnn import (
    HeteroIdentityGraph,
    ToIdentityGraph,
    cycle_counts,
    identity_cost,
    identity_graph,
    reachable,
    snapshot,
    walk_counts,
)
from tests.models.hetero_small import races


def dense(data: HeteroData, kind: tuple[str, str, str]) -> torch.Tensor:
    matrix = torch.zeros(data[kind[0]].num_nodes, data[kind[2]].num_nodes, dtype=torch.double)
    for one, other in data[kind].edge_index.t().tolist():
        matrix[one, other] += 1
    return matrix


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


def test_closed_walks_over_all_edge_types_and_along_a_meta_path():
    data = races()
    of, back = ("result", "of", "driver"), ("driver", "rev_of", "result")
    there = dense(data, back) @ dense(data, of)
    expected = torch.stack([there.diag(), (there @ there).diag(), (there @ there @ there).diag()], dim=1)
    assert torch.equal(cycle_counts(data, "driver", 3, meta_path=[back, of]), expected)
    whole = data.to_homogeneous()
    start = sum(data[kind].num_nodes for kind in data.node_types[: data.node_types.index("driver")])
    assert torch.equal(
        cycle_counts(data, "driver", 4), cycle_counts(whole.edge_index, whole.num_nodes, 4)[start : start + 5]
    )


def test_walks_between_types_along_a_meta_path():
    data = races()
    path = [("circuit", "rev_at", "race"), ("race", "rev_in", "result"), ("result", "of", "driver")]
    matrix = dense(data, path[0]) @ dense(data, path[1]) @ dense(data, path[2])
    circuits, drivers = torch.cartesian_prod(torch.arange(3), torch.arange(5)).t()
    asked = (("circuit", circuits), ("driver", drivers))
    assert torch.equal(walk_counts(data, None, asked, 1, meta_path=path)[:, 0], matrix[circuits, drivers])
    # All walks of three steps between these types are of this meta-path.
    assert torch.equal(walk_counts(data, None, asked, 3)[:, 2], matrix[circuits, drivers])
    with pytest.raises(ValueError, match="can be walked only once"):
        walk_counts(data, None, asked, 2, meta_path=path)
    with pytest.raises(ValueError, match="does not start from 'race'"):
        walk_counts(data, None, asked, 1, meta_path=[path[0], path[2]])
    with pytest.raises(ValueError, match="no edge type of the graph"):
        walk_counts(data, None, asked, 1, meta_path=[("circuit", "near", "driver")])
    with pytest.raises(ValueError, match="expected one from 'driver' back to 'driver'"):
        cycle_counts(data, "driver", 1, meta_path=path)


def timed() -> HeteroData:
    data = races()
    data["race"].time = torch.arange(7)
    data["result"].time = data["race"].time[data["result", "in", "race"].edge_index[1]]
    return data


def test_a_snapshot_has_what_was_there():
    data = timed()
    for strict in (False, True):
        past = snapshot(data, 3, strict=strict)
        for kind in data.edge_types:
            for one, other in past[kind].edge_index.t().tolist():
                for name, node in ((kind[0], one), (kind[2], other)):
                    if "time" in data[name]:
                        time = int(data[name].time[node])
                        assert time < 3 if strict else time <= 3
        assert past["race"].num_nodes == 7
    every = snapshot(data, 6)
    assert all(torch.equal(every[kind].edge_index, data[kind].edge_index) for kind in data.edge_types)
    data["race", "at", "circuit"].time = torch.full((7,), 5)
    past = snapshot(data, 4)
    assert past["race", "at", "circuit"].num_edges == 0
    assert past["race", "at", "circuit"].time.numel() == 0


def test_queries_with_times_are_those_of_their_snapshots():
    data = timed()
    ids, times = [0, 3, 1, 3], torch.tensor([5, 2, 5, 4])
    graph = identity_graph(data, 4, ("driver", ids), query_time=times)
    assert graph["driver"].colored[graph.query_row].all()
    assert (graph["driver"].node[graph.query_row] % 5).tolist() == ids
    assert graph["driver"].batch[graph.query_row].tolist() == [2, 0, 2, 1]
    for place, (node, time) in enumerate(zip(ids, times.tolist(), strict=True)):
        alone = identity_graph(snapshot(data, time), 4, ("driver", [node]))
        into = [
            int((one[kind].edge_index[1] == one.query_row[at]).sum())
            for one, at in ((graph, place), (alone, 0))
            for kind in [("result", "of", "driver")]
        ]
        assert into[0] == into[1]


def test_bad_times_get_a_sentence():
    data = timed()
    with pytest.raises(ValueError, match="has an attribute 'when'"):
        snapshot(data, 3, time_attr="when")
    with pytest.raises(ValueError, match=r"expected one time for each of the 2 queries"):
        identity_graph(data, 4, ("driver", [0, 1]), query_time=torch.tensor([1, 2, 3]))
    with pytest.raises(ValueError, match=r"1 queries at time 2 name nodes of 'race' that were not there by then"):
        identity_graph(data, 4, ("race", [1, 5]), query_time=2)
    data["race"].time = torch.arange(3)
    with pytest.raises(ValueError, match=r"the times of the node type 'race' are \[3\], expected a tensor \[7\]"):
        snapshot(data, 3)
    with pytest.raises(ValueError, match="query_time is for a HeteroData"):
        identity_graph(races().to_homogeneous(), 4, query_time=3)


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        (None, "without queries, expected a node type"),
        ("pilot", "name the node type 'pilot', but the graph has 'driver', 'race', 'circuit', 'result'"),
        (("driver", [5]), "name node 5 of 'driver', which has 5 nodes: expected ids from 0 to 4"),
        (("driver", [-1]), "name node -1 of 'driver'"),
        (("driver", []), "are none of 'driver', expected at least one|whole numbers"),
        (("driver", torch.ones(5, dtype=torch.bool)), "a mask of 'driver', expected ids"),
        (("driver", torch.rand(2)), "expected whole numbers"),
        (("driver", "first"), "expected whole numbers"),
        (torch.tensor([0, 1, 2]), "expected a node type"),
        ((("circuit", [0]), ("driver", [0, 1])), "1 nodes are read and 2 are colored"),
        ((("circuit", [3]), ("driver", [0])), "the nodes that are read name node 3 of 'circuit'"),
        ((("circuit", [0]), "driver"), "expected a node type"),
    ],
)
def test_bad_queries_get_a_sentence(queries, words):
    with pytest.raises(ValueError, match=words):
        identity_graph(races(), 4, queries)


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
