from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from idgnn.identity import cycle_counts as counting
from idgnn.identity.cycle_counts import cycle_counts
from idgnn.identity.walks import hubs
from idgnn.identity.walks import progress as walk_progress
from idgnn.identity.walks.hubs import HubPlan, closed_walks_at_hubs, plan_hubs
from tests.identity.plain_walks import awkward_graphs, plain_cycle_counts


def by_degree(edge_index, num_nodes, num_hubs):
    order = torch.bincount(edge_index.flatten(), minlength=num_nodes).argsort(descending=True)
    return HubPlan(order, num_hubs, torch.ones(num_hubs), 1.0)


@settings(max_examples=150)
@given(awkward_graphs(), st.integers(1, 8), st.floats(0, 1), st.sampled_from([1, 2_000, 2**30]))
def test_walks_at_hubs_and_walks_elsewhere_are_all_walks(graph, length, share, memory):
    edge_index, num_nodes = graph
    plan = by_degree(edge_index, num_nodes, round(share * num_nodes))
    counts, rest = closed_walks_at_hubs(edge_index, plan, length, memory, lambda cost: None)
    hub = torch.zeros(num_nodes, dtype=torch.bool).index_fill(0, plan.order[: plan.num_hubs], True)
    assert not hub[rest].any()
    assert torch.equal(counts + plain_cycle_counts(rest, num_nodes, length), plain_cycle_counts(*graph, length))


@pytest.mark.parametrize("directed", [False, True])
def test_counts_beyond_float32_are_exact(directed):
    """At a dense graph the numbers pass 2^24 on the way, and the states change to float64."""
    torch.manual_seed(0)
    edge_index = torch.randint(60, (2, 700))
    edge_index = edge_index if directed else torch.cat([edge_index, edge_index.flip(0)], dim=1)
    expected = plain_cycle_counts(edge_index, 60, 9)
    assert 2**24 < expected.max() < 2**53
    for num_hubs in (1, 20, 60):
        plan = by_degree(edge_index, 60, num_hubs)
        counts, rest = closed_walks_at_hubs(edge_index, plan, 9, 2**30, lambda cost: None)
        assert torch.equal(counts + plain_cycle_counts(rest, 60, 9), expected)


def preferential(num_nodes, seed=0):
    """Each node has two edges, to earlier nodes of high degree."""
    generator = torch.Generator().manual_seed(seed)
    ends = [0, 1]
    for node in range(2, num_nodes):
        picked = torch.randint(len(ends), (2,), generator=generator).tolist()
        for end in {ends[i] for i in picked}:
            ends += [node, end]
    edge_index = torch.tensor(ends).view(-1, 2).t()
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)


def test_the_plan_takes_hubs_where_it_pays_and_the_counts_stay_the_same():
    edge_index, num_nodes = preferential(300), 300
    with patch.object(counting, "_DENSE_NODES", -1):
        plain = cycle_counts(edge_index, num_nodes, 7)
        with patch.object(hubs, "_SMALLEST", 0):
            plan = plan_hubs(edge_index, num_nodes, 7, 2**30)
            assert 0 < plan.num_hubs < num_nodes
            assert torch.equal(cycle_counts(edge_index, num_nodes, 7), plain)
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64).index_put_(
        tuple(edge_index), torch.ones(()).double(), True
    )
    assert torch.equal(plain[:, 6], torch.linalg.matrix_power(matrix, 7).diagonal())


def test_no_hubs_without_memory_for_them():
    edge_index = preferential(5000)
    assert plan_hubs(edge_index, 5000, 10, 2**30).num_hubs > 0
    assert plan_hubs(edge_index, 5000, 10, 5000 * 8).num_hubs == 0


def test_the_graphs_of_a_batch_are_counted_without_hubs():
    star = torch.stack([torch.zeros(9, dtype=torch.long), torch.arange(1, 10)])
    batch = torch.cat([star + 10 * i for i in range(1000)], dim=1)
    plan = plan_hubs(torch.cat([batch, batch.flip(0)], dim=1), 10_000, 10, 2**30)
    assert plan.num_hubs == 0 and plan.rest_cost < 1e8  # in one piece it would be 1e9


def test_the_cost_is_done_when_the_counts_are():
    edge_index, finished = preferential(300), []
    with patch.object(hubs, "_SMALLEST", 0), patch.object(hubs, "_COLUMNS", 8):
        plan = plan_hubs(edge_index, 300, 6, 2**30)
        closed_walks_at_hubs(edge_index, plan, 6, 2**30, finished.append)
    assert len(finished) > 1
    assert sum(finished) == pytest.approx(float(plan.hub_cost.sum()))


def test_progress_says_how_long_it_takes(capsys):
    now = iter([0.0, 5.0, 11.0, 13.0, 40.0])
    with (
        patch.object(walk_progress, "perf_counter", lambda: next(now)),
        walk_progress.shown_progress("closed walks", 100, True) as done,
    ):
        for cost in (5, 15, 5, 75):
            done(cost)
    assert capsys.readouterr().err == "closed walks: 20% after 11 s, about 44 s left\n"
