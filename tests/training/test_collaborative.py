from itertools import combinations

import pytest
import torch

from idgnn.graphs.relational.interactions import Interactions, read_interactions
from idgnn.graphs.relational.task_tables import ItemLists
from idgnn.models.walk_idgnn import WalkIDGNN
from idgnn.training.collaborative import (
    LightGCN,
    TowerSettings,
    WalkSettings,
    log_chance,
    measure_all,
    most_popular,
    rank_all,
    train_towers,
    train_walks,
)


def groups(users: int = 60, items: int = 40) -> Interactions:
    """Two groups of users with items of their own, and two items that everybody has."""
    generator = torch.Generator().manual_seed(0)
    train, test = [], []
    for user in range(users):
        own = torch.randperm(items // 2, generator=generator)[:8] * 2 + user % 2
        train.append([*own[:5].tolist(), items, items + 1])
        test.append(own[5:].tolist())
    return Interactions(ItemLists.of(train), ItemLists.of(test), items + 2)


def test_walks_and_towers_find_the_items_of_the_group():
    data = groups()
    walks = measure_all(WalkIDGNN(data.train, data.num_items).scores, data, k=15)["recall"]
    popular = measure_all(most_popular(data), data, k=15)["recall"]
    towers = measure_all(train_towers(data, TowerSettings(channels=8, epochs=20, batch_size=200, lr=0.02)), data, k=15)
    assert popular < 0.6 < walks
    assert towers["recall"] > popular + 0.1


def test_sparse_products_are_the_lightgcn_of_pyg():
    from torch_geometric.nn import LightGCN as Reference

    data = Interactions(ItemLists.of([[0, 2], [], [2, 1, 0]]), ItemLists.of([[]] * 3), 4)  # user 1, item 3: no edges
    model, theirs = LightGCN(data, 5, 3), Reference(7, 5, 3)
    theirs.embedding.weight.data.copy_(model.embedding.data)
    edges = torch.stack([data.train.query, data.train.item + 3])
    found, expected = model(), theirs.get_embedding(torch.cat([edges, edges.flip(0)], dim=1))
    weight = torch.randn_like(found)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(model.embedding.grad, theirs.embedding.weight.grad)


def test_items_that_a_user_has_are_not_ranked():
    data = groups()
    top = rank_all(WalkIDGNN(data.train, data.num_items).scores, data.train, torch.arange(60), k=30, batch_size=7)
    assert top.shape == (60, 30)
    for user, items in enumerate(top.tolist()):
        known = data.train.item[data.train.start[user] : data.train.start[user + 1]].tolist()
        assert not set(items) & set(known)


def test_training_lowers_the_loss_and_depends_on_the_seed_alone():
    told: list[str] = []
    settings = WalkSettings(exponents=(0.0, 0.0, 3.0), steps=40, users_per_step=60, lr=0.1)
    model = train_walks(groups(), settings, show=told.append)
    loss = [float(line.split("loss ")[1].split(",")[0]) for line in told]
    assert sum(loss[-5:]) < sum(loss[:5])
    assert torch.equal(model.exponents, train_walks(groups(), settings).exponents)


def test_pairs_that_are_predicted_are_not_in_the_graph():
    lists = ItemLists.of([[0, 1, 3], [1, 2], [2, 3]])
    fewer = ItemLists.of([[0, 3], [1, 2], [2]])
    whole, part = WalkIDGNN(lists, 5, (0, 0, 0)), WalkIDGNN(fewer, 5, (0, 0, 0))
    users = torch.arange(3)
    assert torch.equal(whole.scores(users, without=torch.tensor([1, 6])), part.scores(users))


def test_every_user_holds_out_a_share_of_the_items():
    data = Interactions(
        ItemLists.of([[5, 1], [3], [], list(range(10)), list(range(4, 10))]), ItemLists.of([[]] * 5), 10
    )
    held = data.held_out(0.3, seed=2)
    assert held.test.size.tolist() == [1, 0, 0, 3, 2]
    for user in range(5):
        some = [each.take(torch.tensor([user])).item.tolist() for each in (data.train, held.train, held.test)]
        assert sorted(some[1] + some[2]) == sorted(some[0])
    assert data.held_out(0.3, seed=3).test.item.tolist() != held.test.item.tolist()


def test_lists_are_read_as_they_are_written(tmp_path):
    (tmp_path / "train.txt").write_text("0 3 1\n2 0\n")
    (tmp_path / "test.txt").write_text("2 4\n")
    data = read_interactions(tmp_path / "train.txt", tmp_path / "test.txt")
    assert (data.num_users, data.num_items) == (3, 5)
    assert data.train.item.tolist() == [3, 1, 0]
    assert data.train.start.tolist() == [0, 2, 2, 3]
    assert data.graph()["user", "uses", "item"].edge_index.tolist() == [[0, 0, 2], [3, 1, 0]]


def test_bad_lines_are_listed(tmp_path):
    import pytest

    from idgnn.graphs.files.text import BadRows

    (tmp_path / "train.txt").write_text("0 3 x\n1 2 2\n1 4\n")
    (tmp_path / "test.txt").write_text("0 1\n-1 2\n")
    with pytest.raises(BadRows) as error:
        read_interactions(tmp_path / "train.txt", tmp_path / "test.txt")
    assert [(row.path.name, row.line) for row in error.value.rows] == [
        ("train.txt", 1),
        ("train.txt", 2),
        ("train.txt", 3),
        ("test.txt", 2),
    ]


def test_the_chance_of_an_item_is_counted_over_all_batches():
    items = [0, 0, 0, 1, 2, 2, 3]  # of seven pairs
    count = torch.bincount(torch.tensor(items))
    for size in range(1, 8):
        batches = list(combinations(range(7), size))
        expected = [sum(any(items[i] == item for i in batch) for batch in batches) / len(batches) for item in range(4)]
        assert log_chance(count, 7, size).exp().tolist() == pytest.approx(expected, abs=1e-6)
