"""Schedules: what each round computes, that trimming leaves out what it may and nothing more."""

from dataclasses import is_dataclass

import hypothesis.strategies as st
import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data

from idgnn import identity_graph
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cone_table import ConeTable
from idgnn.identity.queries import as_queries
from idgnn.identity.row_graph import RowGraph, trimmed, whole
from idgnn.identity.schedule import HUB, Schedule
from idgnn.identity.schedule_builder import make_schedule
from tests.laws.graphs import as_pairs, graphs, queries

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def assert_sound(schedule: Schedule, num_nodes: int, num_layers: int) -> None:
    """Each round ends with the rows that the next begins with; both orders of its messages are the same messages."""
    assert len(schedule.rounds) == num_layers
    assert schedule.node.numel() == schedule.rounds[0].num_sources
    assert schedule.node.numel() == 0 or int(schedule.node.max()) < num_nodes
    # What may be left out of a step, because it would select all rows as they are.
    assert schedule.answers_in_order == (schedule.answer.tolist() == list(range(schedule.rounds[-1].num_targets)))
    x = torch.arange(num_nodes)
    assert torch.equal(schedule.start(x), x[schedule.node])
    for before, after in zip(schedule.rounds, schedule.rounds[1:], strict=False):
        assert before.num_targets == after.num_sources
    for round_ in schedule.rounds:
        assert round_.previous.shape == (round_.num_targets,)
        num_colored, exchange = round_.num_sources - round_.split, round_.exchange
        lists = [(round_.colored, num_colored, round_.num_targets)]
        if exchange is None:
            lists.append((round_.plain, round_.split, round_.num_targets))
        else:
            lists.append((round_.plain, exchange.num_plain, exchange.node.numel()))
            lists.append((exchange.changes, round_.split - exchange.num_plain, round_.num_targets))
            assert exchange.twin.shape == (round_.num_sources - exchange.num_plain,)
            assert exchange.base.shape == exchange.received.shape == (round_.num_targets,)
        for messages, size, num_targets in lists:
            assert messages.ptr.numel() == num_targets + 1
            back = messages.back
            source = torch.repeat_interleave(back.ptr.diff())
            assert back.ptr.numel() == size + 1
            assert torch.equal(messages.source[back.edge], source)
            assert torch.equal(messages.target[back.edge], back.neighbor)


@pytest.mark.parametrize("loops", [False, True])
@settings(max_examples=50)
@given(data=st.data(), graph=graphs(), num_layers=st.integers(1, 5))
def test_all_schedules_are_sound(loops, data, graph, num_layers):
    asked = data.draw(queries(graph.num_nodes))
    built = identity_graph(graph, num_layers, asked)
    first_loop = graph.num_edges if loops else None
    questions = as_queries(asked, graph.num_nodes, torch.device("cpu"))
    indexed = IndexedGraph(graph.edge_index, graph.num_nodes, loops)
    for schedule in (
        trimmed(built, num_layers, first_loop),
        whole(RowGraph.of(built), num_layers, first_loop),
        make_schedule(indexed, questions, num_layers, exchange=False),
        make_schedule(indexed, questions, num_layers, exchange=True),
    ):
        assert_sound(schedule, graph.num_nodes, num_layers)


@settings(max_examples=50)
@given(data=st.data(), graph=graphs(), num_layers=st.integers(1, 5))
def test_the_direct_schedule_has_the_rows_and_messages_of_the_trimmed_identity_graph(data, graph, num_layers):
    asked = data.draw(queries(graph.num_nodes))
    expected = trimmed(identity_graph(graph, num_layers, asked), num_layers)
    questions = as_queries(asked, graph.num_nodes, torch.device("cpu"))
    found = make_schedule(IndexedGraph(graph.edge_index, graph.num_nodes), questions, num_layers, exchange=False)
    for ours, theirs in zip(found.rounds, expected.rounds, strict=True):
        assert (ours.num_sources, ours.num_targets, ours.split) == (
            theirs.num_sources,
            theirs.num_targets,
            theirs.split,
        )
        for mine, other in ((ours.plain, theirs.plain), (ours.colored, theirs.colored)):
            assert torch.equal(mine.ptr, other.ptr)
            assert mine.edge.sort().values.tolist() == other.edge.sort().values.tolist()


@pytest.mark.parametrize("exchange", [False, True])
@settings(max_examples=50)
@given(data=st.data(), graph=graphs(), num_layers=st.integers(1, 5), loops=st.booleans())
def test_a_schedule_of_cones_that_were_kept_is_that_of_cones_that_are_found(exchange, data, graph, num_layers, loops):
    indexed = IndexedGraph(graph.edge_index, graph.num_nodes, loops)
    table = ConeTable(indexed, num_layers, torch.arange(graph.num_nodes))
    roots = torch.tensor(data.draw(st.lists(st.integers(0, graph.num_nodes - 1), min_size=1, max_size=5)))
    questions = as_queries(roots, graph.num_nodes, torch.device("cpu"))
    cone, changed = table.take(questions)
    kept = make_schedule(indexed, questions, num_layers, exchange=exchange, cone=cone, changed=changed)
    found = make_schedule(indexed, questions, num_layers, exchange=exchange)
    assert flat(kept) == flat(found)


def flat(value: object) -> object:
    """All numbers of a schedule."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, tuple):
        return [flat(each) for each in value]
    return [flat(each) for each in vars(value).values()] if is_dataclass(value) else value


@settings(max_examples=50)
@given(data=st.data(), graph=graphs(), num_layers=st.integers(1, 5))
def test_with_loops_every_target_receives_its_own_message_exactly_once(data, graph, num_layers):
    built = identity_graph(graph, num_layers, data.draw(queries(graph.num_nodes)))
    node = schedule_nodes(trimmed(built, num_layers, graph.num_edges))
    for depth, round_ in enumerate(trimmed(built, num_layers, graph.num_edges).rounds):
        received = torch.zeros(round_.num_targets, dtype=torch.long)
        for messages, first in ((round_.plain, 0), (round_.colored, round_.split)):
            loop = messages.edge >= graph.num_edges
            received += torch.bincount(messages.target[loop], minlength=round_.num_targets)
            assert torch.equal(messages.source[loop] + first, round_.previous[messages.target[loop]])
            assert torch.equal(node[depth][messages.source[loop] + first], messages.edge[loop] - graph.num_edges)
            source, target = graph.edge_index[:, messages.edge[~loop]]
            assert torch.equal(node[depth][messages.source[~loop] + first], source)
            assert torch.equal(node[depth + 1][messages.target[~loop]], target)
        assert (received == 1).all()


def schedule_nodes(schedule: Schedule) -> list[torch.Tensor]:
    """The node that each row of each depth is a copy of."""
    nodes = [schedule.node]
    for round_ in schedule.rounds:
        nodes.append(nodes[-1][round_.previous])
    return nodes


@settings(max_examples=100)
@given(data=st.data(), graph=graphs(max_nodes=7), num_layers=st.integers(1, 5))
def test_trimming_keeps_at_each_depth_only_rows_that_have_arrived_and_still_matter(data, graph, num_layers):
    """DESIGN.md: at depth k, d(v, u) <= k (else the plain row serves) and d(u, r) <= K - k."""
    asked = data.draw(queries(graph.num_nodes))
    schedule = trimmed(identity_graph(graph, num_layers, asked), num_layers)
    directed = nx.DiGraph()
    directed.add_nodes_from(range(graph.num_nodes))
    directed.add_edges_from(graph.edge_index.t().tolist())
    steps = dict(nx.all_pairs_shortest_path_length(directed))
    listed = as_pairs(asked, graph.num_nodes)

    sizes = [schedule.node.numel()] + [round_.num_targets for round_ in schedule.rounds]
    for depth, size in enumerate(sizes):
        own, plain = set(), set()
        for root, color in listed:
            for node in range(graph.num_nodes):
                if steps[node].get(root, num_layers + 1) > num_layers - depth:
                    continue  # the answer no longer depends on it
                if steps[color].get(node, num_layers + 1) <= depth:
                    own.add((color, node))
                else:
                    plain.add(node)
        assert size <= len(own) + len(plain)
        if depth == 0:
            assert size == len(own) + len(plain)  # what is left must all be there: nothing is read twice


def test_the_radii_of_three_layers_are_0_1_1_0():
    """The balls of DESIGN.md, around one root in the middle of a long path."""
    edges = [(node, node + 1) for node in range(10)]
    edge_index = torch.tensor(edges + [(b, a) for a, b in edges]).t()
    built = identity_graph(Data(edge_index=edge_index, num_nodes=11), 3, torch.tensor([5]))
    schedule = trimmed(built, 3)
    sizes = [schedule.node.numel()] + [round_.num_targets for round_ in schedule.rounds]
    # Own rows 1, 3, 3, 1; beside them the plain rows that the next round reads: 6 nodes within 3 steps at depth 0.
    assert sizes == [1 + 6, 3 + 2, 3, 1]


def test_repeated_queries_are_computed_once():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    schedule = trimmed(identity_graph(data, 2, torch.tensor([1, 1, 0, 1])), 2)
    assert schedule.rounds[-1].num_targets == 2
    assert schedule.answer.tolist() == [1, 1, 0, 1]
    assert not schedule.answers_in_order


def test_a_plain_network_selects_no_rows():
    x, edge_index = torch.rand(3, 2), torch.tensor([[0, 1], [1, 0]])
    schedule = whole(RowGraph.of_nodes(edge_index, 3), 2)
    assert schedule.answers_in_order
    assert schedule.start(x) is x
    assert torch.equal(schedule.start(torch.cat([x, x])), x)  # rows that are those of a part of the nodes


@pytest.mark.parametrize("inwards", [False, True])
@pytest.mark.parametrize(("degree", "expected"), [(HUB, False), (HUB + 1, True)])
def test_it_is_known_where_there_are_hubs(inwards, degree, expected):
    """Nodes with very many in-neighbors, or with very many out-neighbors, which is where gradients come from."""
    leaves = torch.arange(1, degree + 1)
    spokes = [leaves, torch.zeros_like(leaves)]
    data = Data(edge_index=torch.stack(spokes if inwards else spokes[::-1]), num_nodes=degree + 1)
    queries = torch.tensor([0]) if inwards else leaves
    schedule = trimmed(identity_graph(data, 1, queries), 1)
    assert schedule.rounds[0].plain.hubs is expected
