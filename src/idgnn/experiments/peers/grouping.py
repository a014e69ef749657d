"""Which graphs are in which step of an epoch, for all folds at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Generator, Tensor

MOST_PAIRS = 100_000  # of nodes in the padded batch of a copy: 5 graphs of 141 nodes


def group(
    kind: Literal["by size", "shuffled", "drawn"],
    parts: Sequence[Tensor],
    sizes: Tensor,
    batch_size: int,
    generator: Generator,
    steps: int | None = None,
) -> list[Tensor]:
    """The graphs of each step, `[folds, graphs]` with -1 for none.

    `by size` sorts the graphs of each fold, ties at random, and cuts them at the same places: the graphs of a step have
    nearly equal sizes in all folds, so little is padded. Of large graphs there are fewer in a batch. The steps come in
    random order.

    Args:
        kind: How.
        parts: The graphs of each fold.
        sizes: The number of nodes of each graph of the dataset.
        batch_size: The most graphs in a step.
        generator: Of the order.
        steps: How many, if they are drawn.

    Example:
        >>> parts = [torch.tensor([0, 1, 2]), torch.tensor([1, 2, 3])]
        >>> steps = group("by size", parts, torch.tensor([9, 5, 5, 9]), 2, torch.Generator().manual_seed(0))
        >>> sorted(each.sort().values.tolist() for each in steps)
        [[[0], [3]], [[1, 2], [1, 2]]]
    """
    if kind == "drawn":
        return [
            _padded([part[torch.randperm(len(part), generator=generator)[:batch_size]] for part in parts])
            for _ in range(steps or 1)
        ]
    orders = [part[torch.randperm(len(part), generator=generator)] for part in parts]
    if kind == "shuffled":
        return list(_padded(orders).split(batch_size, dim=1))
    order = _padded([each[sizes[each].sort(stable=True).indices] for each in orders])
    largest = torch.where(order < 0, 0, sizes[order]).amax(0).tolist()  # over the folds
    lengths, first = list[int](), 0
    while first < len(largest):
        number = min(batch_size, len(largest) - first)
        while number > 1 and number * largest[first + number - 1] ** 2 > MOST_PAIRS:
            number -= 1
        lengths.append(number)
        first += number
    found = order.split(lengths, dim=1)
    return [found[i] for i in torch.randperm(len(found), generator=generator).tolist()]


def _padded(rows: Sequence[Tensor]) -> Tensor:
    """`[folds, most]`, filled up with -1."""
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=-1)
