"""Where an edge ranks among the non-edges of its graph."""

from itertools import chain

import hypothesis.strategies as st
import torch
from hypothesis import given
from torch import Tensor
from torchmetrics.retrieval import RetrievalHitRate, RetrievalMRR

from idgnn.tasks.objective import HITS, Links
from idgnn.tasks.ranking import ranks


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
    """Every positive is a query of its own, beside all negatives of its graph."""
    score, target, graph = given_
    positives = target.nonzero().flatten().tolist()
    found = Links().measure(score.unsqueeze(-1), target, graph)
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
