"""Link prediction: which edges and pairs are predicted, and how an edge ranks among the negatives of its graph."""

import random
from itertools import chain

import hypothesis.strategies as st
import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch_geometric.data import Data
from torchmetrics.retrieval import RetrievalHitRate, RetrievalMRR

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.schema import Schema
from idgnn.graphs.synthetic import random_regular
from idgnn.tasks.link_prediction import (
    HITS,
    LinkObjective,
    LinkQuerySet,
    links_of_many_graphs,
    links_of_one_graph,
    ranks,
)
from idgnn.tasks.problem import make_problem
from idgnn.tasks.query_set import QuerySet
from idgnn.tasks.task_settings import TaskSettings

LINKS = TaskSettings(name="link-prediction", valid=0.25, test=0.25)

Pairs = set[tuple[int, int]]

# Of graphs this small, all that is held out may be links.
pytestmark = pytest.mark.filterwarnings("ignore::idgnn.tasks.problem.OneClassWarning")


def as_set(pairs: torch.Tensor) -> Pairs:
    return set(map(tuple, pairs.t().tolist()))


def both_ways(pairs: Pairs) -> Pairs:
    return pairs | {(v, u) for u, v in pairs}


def positives_and_negatives(part: QuerySet) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Positives and negatives."""
    assert part.queries is not None and part.target is not None
    yes, no = part.queries[:, part.target == 1], part.queries[:, part.target == 0]
    return list(map(tuple, yes.t().tolist())), list(map(tuple, no.t().tolist()))


@st.composite
def undirected(draw, least: int = 4) -> Data:
    """A random graph with both directions of its edges, and self-loops."""
    size, chance, seed = draw(st.integers(least, 9)), draw(st.sampled_from([0.4, 0.7, 1.0])), draw(st.integers(0, 999))
    graph = nx.gnp_random_graph(size, chance, seed=seed)
    graph.add_edges_from((node, node) for node in range(0, size, 4))
    edges = sorted(graph.to_directed().edges)
    return Data(x=torch.ones(size, 1), edge_index=torch.tensor(edges).view(-1, 2).t(), num_nodes=size)


def every_part(problem) -> dict[str, QuerySet]:
    return {"train": problem.train.epoch(torch.Generator().manual_seed(3)), **problem.held_out}


@settings(max_examples=40)
@given(st.lists(undirected(least=5), min_size=8, max_size=10), st.integers(0, 99))
def test_of_many_graphs_no_positive_carries_messages_and_no_negative_is_an_edge(graphs, seed):
    try:
        problem = make_problem(Dataset("python", graphs), LINKS, seed)
    except ValueError as error:  # all graphs of a part were too small
        assert "has no edge to predict" in str(error)
        return
    seen: list[int] = []
    for name, part in every_part(problem).items():
        ids = problem.graph_ids[name]
        seen += ids
        assert part.num_graphs == len(ids)
        yes, no = positives_and_negatives(part)
        messages = as_set(part.edge_index)
        assert not both_ways(set(yes)) & messages
        start = torch.tensor([0, *(graphs[i].num_nodes for i in ids)]).cumsum(0).tolist()
        edges = {
            (u + first, v + first)
            for i, first in zip(ids, start, strict=False)
            for u, v in graphs[i].edge_index.t().tolist()
        }
        assert set(yes) | messages == edges, "an edge is lost"
        assert both_ways(set(yes)) == set(yes), "an undirected edge is asked for in both directions"
        assert not set(no) & edges and all(u != v for u, v in no)
        for i, first, last in zip(ids, start, start[1:], strict=False):
            inside = [pair for pair in no if first <= pair[0] < last]
            assert all(first <= v < last for _, v in inside)
            joined = sum(u != v for u, v in graphs[i].edge_index.t().tolist())
            asked = sum(first <= u < last for u, _ in yes)
            complete = joined == graphs[i].num_nodes * (graphs[i].num_nodes - 1)
            assert asked > 0 and len(inside) == (0 if complete else asked)
        owner = part.query_owner
        assert bool((owner.diff() >= 0).all()), "queries lie graph by graph"
    assert len(set(seen)) == len(seen)


@settings(max_examples=40)
@given(undirected(least=7), st.integers(0, 99), st.sampled_from([(0.25, 0.25), (0.3, 0.0), (0.1, 0.4)]))
def test_of_one_graph_every_edge_has_one_part(graph, seed, shares):
    valid, test = shares
    task = TaskSettings(name="link-prediction", valid=valid, test=test)
    edges = as_set(graph.edge_index)
    joined = {(u, v) for u, v in edges if u < v}
    try:
        problem = make_problem(Dataset("python", [graph]), task, seed)
    except ValueError as error:
        assert "has no edge to predict" in str(error) and len(joined) < 10
        return
    parts = every_part(problem)
    assert set(parts) == {"train", "valid", "test"} - ({"test"} if not test else set())
    positives = {name: set(positives_and_negatives(part)[0]) for name, part in parts.items()}
    for name, part in parts.items():
        no = positives_and_negatives(part)[1]
        messages = as_set(part.edge_index)
        assert not both_ways(positives[name]) & messages
        assert not set(no) & edges and all(u != v for u, v in no)
        assert (
            len(no) == len(positives_and_negatives(part)[0])
            or len(joined) == graph.num_nodes * (graph.num_nodes - 1) / 2
        )
        for other in set(parts) - {name}:
            assert not positives[name] & positives[other]
        if name != "train":  # nothing that is held out is ever seen
            for other in parts:
                assert not positives[name] & as_set(parts[other].edge_index)
            assert messages == edges - positives["valid"] - positives.get("test", set())
    held = {name: len(positives[name]) / 2 / len(joined) for name in parts if name != "train"}
    for name, share in (("valid", valid), ("test", test)):
        if share:
            assert abs(held[name] - share) <= 1 / len(joined)


def regular_links(num_graphs: int = 4) -> LinkQuerySet:
    graphs = random_regular(num_graphs, num_nodes=12, degree=4, seed=1)
    parts, _ = links_of_many_graphs(graphs, {"train": list(range(num_graphs))}, 0.3, torch.Generator(), False)
    return parts["train"]


def test_the_generator_of_an_epoch_decides_its_negatives():
    part = regular_links()
    drawn = [part.epoch(torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(drawn[0].queries, drawn[1].queries)
    (first, one), (second, two) = positives_and_negatives(drawn[0]), positives_and_negatives(drawn[2])
    assert first == second and one != two


def test_negatives_reach_every_pair_that_is_no_edge():
    """Over many epochs; in a small graph all of them come up."""
    part = regular_links(1)
    generator = torch.Generator().manual_seed(0)
    seen = set().union(*(positives_and_negatives(part.epoch(generator))[1] for _ in range(60)))
    assert seen == {(u, v) for u in range(12) for v in range(12) if u != v} - as_set(part.known)


def test_graphs_with_too_few_edges_are_left_out():
    tiny = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    none = Data(x=torch.ones(3, 1), edge_index=torch.empty(2, 0, dtype=torch.long))
    graphs = [tiny, *random_regular(2, 10, 3), none]
    parts, ids = links_of_many_graphs(graphs, {"train": [0, 1, 2, 3]}, 0.2, torch.Generator(), False)
    assert ids == {"train": [1, 2]} and parts["train"].num_graphs == 2
    with pytest.raises(ValueError, match=r"part 'valid' has no edge to predict. Use more or larger graphs"):
        links_of_many_graphs(graphs, {"train": [1], "valid": [0, 3]}, 0.2, torch.Generator(), False)


def test_a_complete_graph_has_no_negatives():
    graph = Data(
        x=torch.ones(5, 1), edge_index=torch.tensor([(u, v) for u in range(5) for v in range(5) if u != v]).t()
    )
    part = links_of_one_graph(graph, {"valid": 0.2}, 0.2, torch.Generator(), False)["train"].epoch(torch.Generator())
    yes, no = positives_and_negatives(part)
    assert yes and not no


def test_a_graph_without_edge_index_is_refused():
    with pytest.raises(ValueError, match="the graph has no edge_index, expected"):
        make_problem(Dataset("python", [Data(x=torch.ones(5, 1))]), LINKS, 0)


@pytest.mark.parametrize("schema", [Schema(directed=True), None], ids=["said", "seen"])
def test_links_of_directed_graphs_keep_their_direction(schema):
    rng = random.Random(0)
    edges = {(u, v) for u, v in ((rng.randrange(12), rng.randrange(12)) for _ in range(60)) if u < v}
    graph = Data(x=torch.ones(12, 1), edge_index=torch.tensor(sorted(edges)).t())
    dataset = Dataset("python", [graph], schema)
    problem = make_problem(dataset, LINKS, 0)
    for part in every_part(problem).values():
        yes, no = positives_and_negatives(part)
        assert set(yes) <= edges and not set(no) & edges
        assert not set(yes) & as_set(part.edge_index)
    backwards = [
        pair for part in every_part(problem).values() for pair in positives_and_negatives(part)[1] if pair[0] > pair[1]
    ]
    assert backwards, "the other direction of an edge is no edge"


def test_edge_features_and_weights_stay_with_their_edges():
    graph = random_regular(1, 12, 4)[0]
    graph.edge_weight = (graph.edge_index[0] * 100 + graph.edge_index[1]).float()
    graph.edge_attr = torch.stack([graph.edge_index[0], graph.edge_index[1]], dim=1).float()
    for part in links_of_one_graph(graph, {"valid": 0.3}, 0.3, torch.Generator(), False).values():
        assert part.edge_weight is not None and part.edge_attr is not None
        assert torch.equal(part.edge_weight, (part.edge_index[0] * 100 + part.edge_index[1]).float())
        assert torch.equal(part.edge_attr, part.edge_index.t().float())


@st.composite
def answers(draw, ties: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, targets and graphs of up to 30 queries, in any order; graphs without positives or negatives too."""
    size = draw(st.integers(1, 30))
    if ties:
        score = draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size))
    else:
        score = draw(st.permutations(range(1, size + 1)))  # torchmetrics takes scores of 0 and below for misses
    target = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    graph = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    return torch.tensor(score).float(), torch.tensor(target), torch.tensor(graph)


def by_comparison(score: Tensor, target: Tensor, graph: Tensor) -> list[float]:
    """The definition: one for itself, one for every negative above, a half for every negative that ties."""
    found = []
    for i in target.nonzero().flatten().tolist():
        negative = score[(target == 0) & (graph == graph[i])]
        found.append(1 + float((negative > score[i]).sum()) + float((negative == score[i]).sum()) / 2)
    return found


@given(answers(ties=True))
def test_every_positive_is_compared_with_every_negative_of_its_graph_and_ties_get_the_middle(given_):
    found = ranks(*given_)
    assert found.dtype == torch.double
    assert found.tolist() == by_comparison(*given_)


@given(answers(ties=False))
def test_mrr_and_hits_are_those_of_torchmetrics(given_):
    """Every positive is a query of its own, with all negatives of its graph."""
    score, target, graph = given_
    positives = target.nonzero().flatten().tolist()
    found = LinkObjective().measure(score.unsqueeze(-1), target, graph)
    if not positives:
        assert found["mrr"] != found["mrr"] and all(found[f"hits@{k}"] != found[f"hits@{k}"] for k in HITS)
        return
    rows = [[i, *((target == 0) & (graph == graph[i])).nonzero().flatten().tolist()] for i in positives]
    query = torch.arange(len(rows)).repeat_interleave(torch.tensor(list(map(len, rows))))
    row = torch.tensor(list(chain(*rows)))
    truth = torch.cat([torch.arange(len(each)) == 0 for each in rows])
    expected = RetrievalMRR()(score[row], truth, query)
    assert abs(found["mrr"] - float(expected)) < 1e-6
    for k in HITS:
        assert abs(found[f"hits@{k}"] - float(RetrievalHitRate(top_k=k)(score[row], truth, query))) < 1e-6


@given(answers(ties=True), st.randoms(use_true_random=False))
def test_the_order_of_queries_does_not_matter(given_, random):
    score, target, graph = given_
    order = torch.tensor(random.sample(range(score.numel()), score.numel()))
    positives = target.bool()
    place = torch.full_like(target, -1)
    place[positives] = torch.arange(int(positives.sum()))
    expected = ranks(*given_)[place[order][positives[order]]]
    assert torch.equal(ranks(score[order], target[order], graph[order]), expected)


@given(answers(ties=True))
def test_only_the_order_of_scores_matters(given_):
    score, target, graph = given_
    assert torch.equal(ranks(score.exp() * 1e-3 - 7, target, graph), ranks(score, target, graph))


def test_an_edge_without_non_edges_beside_it_is_first():
    score, target, graph = torch.tensor([-5.0, 1.0, 2.0]), torch.tensor([1, 0, 1]), torch.tensor([0, 1, 1])
    assert ranks(score, target, graph).tolist() == [1, 1]


def test_no_queries_have_no_ranks():
    empty = torch.empty(0, dtype=torch.long)
    assert ranks(empty.float(), empty, empty).tolist() == []
