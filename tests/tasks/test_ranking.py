import pytest
import torch
from torchmetrics.functional.retrieval import (
    retrieval_average_precision,
    retrieval_normalized_dcg,
    retrieval_recall,
    retrieval_reciprocal_rank,
)

from idgnn.graphs.relational.task_tables import ItemLists
from idgnn.tasks.ranking import hits, ranking_metrics, top_items


@pytest.mark.parametrize("k", [1, 3, 10, 50])
def test_metrics_are_those_of_torchmetrics(k):
    generator = torch.Generator().manual_seed(k)
    score = torch.rand(40, 30, generator=generator)  # positive: torchmetrics' recall leaves out other scores
    wanted = torch.rand(40, 30, generator=generator) < torch.rand(40, 1, generator=generator) ** 2
    relevant = ItemLists.of([row.nonzero().view(-1).tolist() for row in wanted])
    found = ranking_metrics(top_items(score, k), relevant)
    rows = [i for i in range(40) if wanted[i].any()]
    assert len(rows) < 40  # queries without a relevant item do not count

    def mean(metric, **options):
        return torch.stack([metric(score[i], wanted[i], **options) for i in rows]).double().mean().item()

    k = min(k, 30)
    assert found["recall"] == pytest.approx(mean(retrieval_recall, top_k=k), abs=1e-6)
    assert found["ndcg"] == pytest.approx(mean(retrieval_normalized_dcg, top_k=k), abs=1e-6)
    assert found["mrr"] == pytest.approx(mean(retrieval_reciprocal_rank, top_k=k), abs=1e-6)
    # torchmetrics divides by the hits among the first k, we by the most that there could be.
    precision = []
    for i in rows:
        hit = wanted[i][score[i].topk(k).indices].sum() / wanted[i].sum().clamp(max=k)
        precision.append(retrieval_average_precision(score[i], wanted[i], top_k=k) * hit)
    assert found["map"] == pytest.approx(torch.stack(precision).mean().item(), abs=1e-6)


def test_average_precision_by_hand():
    relevant = ItemLists.of([[4, 0, 9], [1]])
    found = ranking_metrics(torch.tensor([[0, 1], [2, 3]]), relevant)
    assert found["map"] == pytest.approx((1 / 2 + 0) / 2)
    assert found["mrr"] == 0.5
    assert found["precision"] == 0.25


def test_known_items_are_not_ranked_and_ties_go_by_number():
    score = torch.tensor([[1.0, 2.0, 2.0, 2.0, 0.0]])
    assert top_items(score, 3).tolist() == [[1, 2, 3]]
    assert top_items(score, 3, ItemLists.of([[2]])).tolist() == [[1, 3, 0]]
    assert score[0, 2] == 2  # the scores are not changed


def test_ties_go_by_number_whether_few_or_many():
    generator = torch.Generator().manual_seed(0)
    for levels in (2, 5, 1000):
        score = torch.randint(levels, (20, 400), generator=generator).float()
        for k in (1, 7, 60, 400):
            expected = [sorted(range(400), key=lambda i: (-row[i], i))[:k] for row in score.tolist()]
            assert top_items(score, k).tolist() == expected


def test_no_relevant_item_at_all():
    assert not hits(torch.tensor([[0, 1]]), ItemLists.of([[]])).any()
    assert ranking_metrics(torch.tensor([[0, 1]]), ItemLists.of([[]]))["map"] != 0  # NaN: there is no mean


def test_lists_can_be_taken_and_masked():
    lists = ItemLists.of([[3], [], [1, 2]])
    some = lists.take(torch.tensor([2, 0, 2]))
    assert some.item.tolist() == [1, 2, 3, 1, 2]
    assert some.as_mask(4).int().tolist() == [[0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 0]]
