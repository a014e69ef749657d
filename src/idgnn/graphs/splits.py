"""Splits of graphs, or of the nodes of a graph, into training, validation and test parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset

_PARTS = ("train", "valid", "test", "ambiguous")  # the last: held out apart, because their labels are not certain


@dataclass(frozen=True, eq=False)
class Split(Mapping[str, Tensor]):
    """The ids of each part, `"train"`, `"valid"` and maybe others: no id is in two parts, or twice in one.

    Example:
        >>> split = random_split(10, seed=1)
        >>> len(split["train"]), len(split["valid"])
        (8, 2)
    """

    ids: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        unknown = [part for part in self.ids if part not in _PARTS]
        if unknown or not self.ids:
            raise ValueError(
                f"the parts of a split are {list(self.ids)}, expected some of {list(_PARTS)}. Rename them."
            )
        every = torch.cat(list(self.ids.values()))
        if every.unique().numel() != every.numel():
            raise ValueError(
                f"{every.numel() - every.unique().numel()} ids of the split appear more than once, expected each in "
                "one part at most. Remove them from the other parts."
            )

    def __getitem__(self, part: str) -> Tensor:
        return self.ids[part]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


def random_split(num: int, fractions: Sequence[float] = (0.8, 0.2), seed: int = 0) -> Split:
    """Ids 0 to `num - 1` in random parts: train and valid, and with a third fraction test. Every id is in one."""
    if len(fractions) not in (2, 3) or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(
            f"fractions is {list(fractions)}, expected 2 or 3 positive numbers with the sum 1, for "
            "train, valid and test."
        )
    borders = [0, *(round(num * sum(fractions[: part + 1])) for part in range(len(fractions) - 1)), num]
    sizes = [last - first for first, last in pairwise(borders)]
    while num >= len(sizes) and min(sizes) < 1:  # with few ids the largest parts give some to the empty ones
        smallest, largest = sizes.index(min(sizes)), sizes.index(max(sizes))
        sizes[smallest], sizes[largest] = sizes[smallest] + 1, sizes[largest] - 1
    if min(sizes) < 1:
        raise ValueError(
            f"{num} graphs or nodes in parts of {list(fractions)} leave parts of sizes {sizes}, expected at least "
            "one in each. Use more of them, or other fractions."
        )
    order = torch.randperm(num, generator=torch.Generator().manual_seed(seed))
    return Split(dict(zip(_PARTS, (part.sort().values for part in order.split(sizes)), strict=False)))


def k_fold(labels_or_num: Tensor | int, folds: int = 10, seed: int = 0, stratified: bool = True) -> list[Split]:
    """One split per fold, which is its part valid while the others are train. Folds differ in size by at most one.

    Args:
        labels_or_num: the class of each graph `[num]`, or only their number, if `stratified` is false.
        folds: how many.
        seed: of the shuffle.
        stratified: whether the numbers of members of a class differ by at most one between folds.
    """
    labels = torch.zeros(labels_or_num) if isinstance(labels_or_num, int) else labels_or_num.view(-1).cpu()
    if stratified and isinstance(labels_or_num, int):
        raise ValueError(
            f"k_fold was given only the number {labels_or_num}, expected the label of each graph to stratify by. Pass "
            "the labels, or stratified=False."
        )
    num = labels.numel()
    if not 2 <= folds <= num:
        raise ValueError(f"folds is {folds} for {num} graphs or nodes, expected at least 2 and at most {num} of them.")
    order = torch.randperm(num, generator=torch.Generator().manual_seed(seed))
    if stratified:
        order = order[labels[order].sort(stable=True).indices]
    # Folds are assigned in turn: the members of a class are adjacent in the order, so they get different folds.
    fold = torch.empty(num, dtype=torch.long)
    fold[order] = torch.arange(num) % folds
    return [
        Split({"train": (fold != each).nonzero().flatten(), "valid": (fold == each).nonzero().flatten()})
        for each in range(folds)
    ]


def provided_fold(dataset: Dataset, folds: int, fold: int) -> Split:
    """One of the folds that come with the dataset."""
    if len(dataset.provided_folds) != folds:
        raise ValueError(
            f"folds is {folds}, but {dataset.name} comes with {len(dataset.provided_folds)} folds. Use that number."
        )
    return Split(dataset.provided_folds[fold])


def provided(dataset: Dataset) -> Split:
    """The split that comes with the dataset: of its graphs, or of the nodes of its only graph by PyG's masks."""
    if dataset.provided_split:
        return Split(dataset.provided_split)
    only = dataset.graphs[0] if len(dataset) == 1 else Data()
    masks = {"train": only.get("train_mask"), "valid": only.get("val_mask"), "test": only.get("test_mask")}
    ids = {part: mask.nonzero().flatten() for part, mask in masks.items() if mask is not None}
    if not ids:
        raise ValueError(f"no split comes with {dataset.name}. Use split random or folds.")
    return Split(ids)
