"""Snapshots of graphs with times, and queries with times of their own."""

import pytest
import torch
from torch_geometric.data import HeteroData

from idgnn import identity_graph, snapshot
from tests.models.hetero.races import races


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
