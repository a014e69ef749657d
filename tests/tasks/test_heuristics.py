from collections import Counter

import pytest
import torch
from torch_geometric.data import HeteroData

from idgnn.graphs.relational.task_tables import TimedQueries
from idgnn.graphs.relational.times import YEAR
from idgnn.tasks.heuristics import direct_uses, find_uses, past_visits, popularity, shortest_path


@pytest.fixture
def graph() -> HeteroData:
    """Results of drivers in races on circuits, at random; races have times, results do not."""
    torch.manual_seed(0)
    graph = HeteroData()
    for name, size in (("driver", 5), ("circuit", 4), ("race", 12), ("result", 40)):
        graph[name].num_nodes = size
    graph["race"].time = (torch.arange(12) * YEAR).long()
    for name, kind, other in (
        ("race", "circuit", "circuit"),
        ("result", "race", "race"),
        ("result", "driver", "driver"),
    ):
        rows = torch.arange(graph[name].num_nodes)
        edges = torch.stack([rows, torch.randint(graph[other].num_nodes, rows.shape)])
        graph[name, kind, other].edge_index = edges
        graph[other, f"rev_{kind}", name].edge_index = edges.flip(0)
    return graph


def plain_uses(graph):
    race_of = graph["result", "race", "race"].edge_index[1].tolist()
    driver_of = graph["result", "driver", "driver"].edge_index[1].tolist()
    circuit_of = graph["race", "circuit", "circuit"].edge_index[1].tolist()
    return [(d, circuit_of[r], graph["race"].time[r].item()) for r, d in zip(race_of, driver_of, strict=True)]


def test_uses_follow_the_foreign_keys(graph):
    uses = find_uses(graph, "driver", "circuit")
    found = zip(uses.entity.tolist(), uses.item.tolist(), uses.time.tolist(), strict=True)
    assert Counter(found) == Counter(plain_uses(graph))
    assert shortest_path(graph, "driver", "driver") == [
        ("driver", "rev_driver", "result"),
        ("result", "driver", "driver"),
    ]


@pytest.mark.parametrize("years", [None, 3])
def test_counts_are_those_before_the_query(graph, years):
    moments = torch.tensor([4 * YEAR + 1, 4 * YEAR, 9 * YEAR]).long()
    queries = TimedQueries("driver", torch.tensor([0, 3, 4]), moments)
    popular = popularity(direct_uses(graph, "circuit"), queries, 4, years)
    own = past_visits(find_uses(graph, "driver", "circuit"), popular, queries, 4, years)
    circuit_of = graph["race", "circuit", "circuit"].edge_index[1].tolist()
    for q, (entity, moment) in enumerate(zip([0, 3, 4], moments.tolist(), strict=True)):
        first = -1 if years is None else moment - years * YEAR
        races = Counter(c for r, c in enumerate(circuit_of) if first <= r * YEAR < moment)
        assert popular[q].tolist() == [races[c] for c in range(4)]
        visits = Counter(c for d, c, t in plain_uses(graph) if d == entity and first <= t < moment)
        assert own[q].floor().tolist() == [visits[c] for c in range(4)]
        order = sorted(range(4), key=lambda c: (-visits[c], -races[c]))
        assert [own[q, c] for c in order] == sorted(own[q].tolist(), reverse=True)


def test_types_that_nothing_connects_are_refused(graph):
    graph["weather"].num_nodes = 3
    with pytest.raises(ValueError, match="no path of edge types leads from 'driver' to 'weather'"):
        find_uses(graph, "driver", "weather")
    with pytest.raises(ValueError, match="no foreign key refers to 'weather'"):
        direct_uses(graph, "weather")
