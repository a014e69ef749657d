"""Parts of a long computation in several threads, within a stated amount of memory, handed over in order.

What is worked out for the rows of some queries is many small operations on indices, which PyTorch's own threads do not
make faster; so each thread takes other queries, and PyTorch has one thread in each of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    work: Callable[[Item], Result], items: Iterable[tuple[Item, float]], room: float, num_threads: int
) -> Iterator[tuple[Item, Result]]:
    """What `work` makes of each item, without gradients, and in the order of the items.

    Args:
        work: A function that may run in several threads at once.
        items: Each with its cost.
        room: What items that are worked on at once may cost together; one alone may cost more.
        num_threads: With 1 there are no other threads, nor if there are fewer items than these: then PyTorch uses its
            own.

    Example:
        >>> list(in_threads(lambda n: n * n, [(1, 0.0), (2, 0.0), (3, 0.0)], room=1.0, num_threads=2))
        [(1, 1), (2, 4), (3, 9)]
    """

    def run(item: Item) -> Result:
        with torch.no_grad():  # a mode of each thread
            return work(item)

    items = list(items)
    if num_threads == 1 or len(items) < num_threads:
        for item, _ in items:
            yield item, run(item)
        return
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(num_threads, initializer=torch.set_num_threads, initargs=(1,))
    waiting = deque[tuple[Item, float, Future[Result]]]()
    try:
        for item, cost in items:
            while waiting and (len(waiting) > num_threads or cost + sum(each for _, each, _ in waiting) > room):
                done, _, result = waiting.popleft()
                yield done, result.result()
            waiting.append((item, cost, pool.submit(run, item)))
        while waiting:
            done, _, result = waiting.popleft()
            yield done, result.result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # also for the libraries that PyTorch calls: their number is one for all threads
