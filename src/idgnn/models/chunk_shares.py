"""Which chunks of an embedding each of several processes computes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Share:
    """The share of a process: the chunks of its rank, of at least `parts` chunks in all.

    Chunks do not depend on the number of processes, and what is computed in a chunk does not depend on others. So all
    shares together are, bit for bit, what one process computes with as many parts and the same memory.

    Example:
        >>> [Share(rank, 2).left([(0, 3), (3, 5), (5, 6)], start=0) for rank in range(2)]
        [[(0, 3)], [(3, 5), (5, 6)]]
    """

    rank: int = 0
    size: int = 1
    parts: int = 1

    def left(self, chunks: Iterable[tuple[int, int]], start: int) -> list[tuple[int, int]]:
        """The chunks of this process, consecutive ones that cost about the same, without what is done up to `start`.

        One that was begun in smaller chunks, with less memory, is finished.
        """
        every = list(chunks)
        own = every[len(every) * self.rank // self.size : len(every) * (self.rank + 1) // self.size]
        return [(max(first, start), last) for first, last in own if last > start]

    def limit(self, cost: Tensor) -> float:
        """The most that a chunk of queries of these costs may cost."""
        return math.inf if self.parts == 1 else float(cost.sum()) / self.parts


WHOLE = Share()
