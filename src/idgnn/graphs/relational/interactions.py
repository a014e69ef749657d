"""Users and the items that each of them used: the lists of collaborative filtering, LightGCN's Gowalla among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.graphs.files.text import BadRow, BadRows, text_lines
from idgnn.graphs.relational.task_tables import ItemLists


@dataclass(frozen=True)
class Interactions:
    """The items of every user, for training and for test."""

    train: ItemLists
    test: ItemLists
    num_items: int

    @property
    def num_users(self) -> int:
        """The number of users."""
        return len(self.train)

    def graph(self) -> HeteroData:
        """The training pairs as a graph of the node types `user` and `item`, with edges in both directions."""
        return pairs_graph(self.train, self.num_items)

    def held_out(self, share: float, seed: int = 0) -> Interactions:
        """A random share of the training items of every user, one at least, in place of the test items, to choose by.

        A user with a single item keeps it. A share of all pairs would leave out most users that have few.
        """
        size = self.train.size
        key = torch.rand(self.train.item.numel(), dtype=torch.double, generator=torch.Generator().manual_seed(seed))
        order = (self.train.query + key).argsort()  # shuffled within each user
        place = torch.empty_like(order).index_copy(0, order, torch.arange(order.numel()))
        place = place - self.train.start[:-1].repeat_interleave(size)
        count = (share * size).round().long().clamp(min=1).minimum((size - 1).clamp(min=0))
        gone = place < count.repeat_interleave(size)
        return Interactions(_some(self.train, ~gone), _some(self.train, gone), self.num_items)


def read_interactions(train: Path, test: Path) -> Interactions:
    """Reads two files of lines `user item item ...`, all of them whole numbers from 0; compressed (`.gz`) or not.

    Raises:
        BadRows: lines with something else, users that stand there twice, and items that a user has twice.
    """
    bad: list[BadRow] = []
    parts = [_lists(path, bad) for path in (Path(train), Path(test))]
    if bad:
        raise BadRows(bad)
    users = max((max(part) for part in parts if part), default=-1) + 1
    items = max((max(items) for part in parts for items in part.values() if items), default=-1) + 1
    if not users or not items:
        raise ValueError(f"{train} and {test} name no users or no items, expected lines such as: 0 17 4.")
    found = [ItemLists.of([part.get(user, []) for user in range(users)]) for part in parts]
    return Interactions(found[0], found[1], items)


def pairs_graph(lists: ItemLists, num_items: int) -> HeteroData:
    """Lists of items as a graph of the node types `user` and `item`."""
    graph = HeteroData()
    graph["user"].num_nodes, graph["item"].num_nodes = len(lists), num_items
    edges = torch.stack([lists.query, lists.item])
    graph["user", "uses", "item"].edge_index = edges
    graph["item", "rev_uses", "user"].edge_index = edges.flip(0)
    return graph


def _lists(path: Path, bad: list[BadRow]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, line in enumerate(text_lines(path), 1):
        words = line.split()
        if not words:
            continue
        if not all(word.isdecimal() for word in words):
            strange = next(word for word in words if not word.isdecimal())
            bad.append(BadRow(path, number, f"{strange!r} is no whole number from 0"))
            continue
        user, *items = map(int, words)
        if user in found:
            bad.append(BadRow(path, number, f"user {user} stands in an earlier line, too"))
        if len(set(items)) < len(items):
            bad.append(BadRow(path, number, f"user {user} has an item twice"))
        found[user] = items
    return found


def _some(lists: ItemLists, keep: Tensor) -> ItemLists:
    size = torch.bincount(lists.query[keep], minlength=len(lists))
    return ItemLists(lists.item[keep], torch.cat([size.new_zeros(1), size.cumsum(0)]))
