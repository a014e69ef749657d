r"""Closed walks that visit a hub, counted hub by hub, so that the rest of the graph is small.

Let the nodes be ordered by degree, hubs first. Every closed walk at v that visits a hub has a first hub h in this
order, and all of its nodes are in the graph :math:`G_h` of h and the nodes after it. Such a walk goes from v to h,
closes some walks at h, and goes back to v. With :math:`F_i[v]` the walks of i steps in :math:`G_h` that reach h at
their last step only, :math:`B_j[v]` those that start at h and do not return to it, and :math:`R_l` the closed walks at
h, the closed walks of length k at v with the first hub h are

.. math:: \sum_{i + j + l = k} F_i[v] B_j[v] R_l

No term is negative and none is subtracted, so sums below 2^53 are exact. Each further hub has fewer edges around it: in
a scale-free graph of a million edges, the 10% of the nodes with the highest degrees have three quarters of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import inverse
from idgnn.identity.walks.components import contiguous_blocks
from idgnn.identity.walks.matrix import SINGLE, WalkMatrix, walk_matrices
from idgnn.identity.walks.progress import Done

# Smaller graphs are counted in a few seconds as they are.
_SMALLEST = 4000
_COLUMNS = 64  # hubs at once: whole vector registers, and a row is a few cache lines
# A state of so many numbers of 8 bytes is not larger than what the C library keeps for the next state.
_NUMBERS = 2**22
# Rows whose numbers are multiplied at once: few enough for the cache.
_ROWS_AT_ONCE = 256
# Nanoseconds, measured on one core for walks of 10 steps on a scale-free graph of a million edges: of one hub for each
# edge that is left, and of one column without hubs for each edge and for each row.
_HUB_EDGE, _COLUMN_EDGE, _COLUMN_ROW = 8.0, 1.3, 6.0


@dataclass(frozen=True)
class HubPlan:
    """How many of the nodes are hubs."""

    order: Tensor  # [num_nodes] the nodes by degree, the highest first
    num_hubs: int
    hub_cost: Tensor  # [num_hubs] relative to the others and to rest_cost
    rest_cost: float


def plan_hubs(edge_index: Tensor, num_nodes: int, length: int, memory: int) -> HubPlan:
    """Takes as many hubs as make the estimated cost least; none where it does not pay, or takes too much memory."""
    source, target = edge_index
    degree = torch.bincount(source, minlength=num_nodes) + torch.bincount(target, minlength=num_nodes)
    order = degree.argsort(descending=True, stable=True)
    too_large = memory < 8 * _state_bytes(2, length) * num_nodes  # for a few columns at once
    if num_nodes < _SMALLEST or length <= 2 or too_large or edge_index.device.type != "cpu":
        return HubPlan(order, 0, order.new_zeros(0).double(), 1.0)
    rank = inverse(order)
    first = torch.minimum(rank[source], rank[target])  # [num_edges] the edge is left while this many hubs are taken
    last = torch.full_like(rank, -1).scatter_reduce(0, source, first, "amax").scatter_reduce(0, target, first, "amax")
    edges, rows = (_at_least(values, num_nodes) for values in (first, last))  # [num_nodes + 1] left after so many hubs
    hub = _HUB_EDGE * edges[:-1]
    direct = rows * (_COLUMN_EDGE * edges + _COLUMN_ROW * rows)
    total = torch.cat([hub.new_zeros(1), hub.cumsum(0)]) + direct
    total[0] = _cost_without_hubs(source, target, num_nodes)
    num_hubs = int(total.argmin())
    return HubPlan(order, num_hubs, hub[:num_hubs], float(total[0] if num_hubs == 0 else direct[num_hubs]))


def _cost_without_hubs(source: Tensor, target: Tensor, num_nodes: int) -> float:
    """Columns reach their own block of nodes alone: the graphs of a batch are counted side by side."""
    block = contiguous_blocks(source, target, num_nodes)
    rows = torch.bincount(block).double()
    edges = torch.bincount(block[source], minlength=rows.numel()).double()
    return float((rows * (_COLUMN_EDGE * edges + _COLUMN_ROW * rows)).sum())


def _state_bytes(directions: int, length: int) -> int:
    """Bytes for each row and column: the walks of each number of steps, in float64 at worst, and a product."""
    return 8 * (directions * length + 2)


def _at_least(values: Tensor, size: int) -> Tensor:
    """How many of the values are at least 0, 1, ..., `size`: `[size + 1]` in float64."""
    count = torch.bincount(values[values >= 0], minlength=size + 1)
    return count.flip(0).cumsum(0).flip(0).double()


def closed_walks_at_hubs(
    edge_index: Tensor, plan: HubPlan, length: int, memory: int, done: Done
) -> tuple[Tensor, Tensor]:
    """The closed walks that visit a hub, `[num_nodes, length]` in float64, and the edges that no hub is an end of.

    `done` is called with the cost of each part that is finished.
    """
    num_nodes, device = plan.order.numel(), edge_index.device
    rank = torch.empty_like(plan.order).index_copy_(0, plan.order, torch.arange(num_nodes, device=device))
    ranked = rank[edge_index]
    size = torch.ones(num_nodes, dtype=torch.float64, device=device)
    forward, backward = walk_matrices(ranked[0], ranked[1], size, probabilities=False)
    total = torch.zeros(num_nodes, length, dtype=torch.float64, device=device)
    first = 0
    while first < plan.num_hubs:
        rows = num_nodes - first
        most = memory // (_state_bytes(1 if forward is backward else 2, length) * rows)
        width = min(_NUMBERS // rows // 8 * 8, _COLUMNS, most, plan.num_hubs - first)
        width = max(width, 1)
        with _one_thread():
            _add_chunk(total[first:], forward, backward, width, length)
        done(float(plan.hub_cost[first : first + width].sum()))
        forward, backward = _without_first(forward, backward, width)
        first += width
    counts = torch.empty_like(total).index_copy_(0, plan.order, total)
    return counts, edge_index[:, (ranked >= plan.num_hubs).all(0)]


@contextmanager
def _one_thread() -> Iterator[None]:
    """For many small operations: on a busy machine, threads would wait for each other longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _without_first(forward: WalkMatrix, backward: WalkMatrix, count: int) -> tuple[WalkMatrix, WalkMatrix]:
    rest = forward.without_first(count)
    return rest, rest if backward is forward else backward.without_first(count)


def _add_chunk(total: Tensor, forward: WalkMatrix, backward: WalkMatrix, width: int, length: int) -> None:
    """Adds the closed walks whose first hub is one of the first `width` rows: `total` is `[rows, length]`."""
    arriving = _Passages(forward, backward, width)
    leaving = arriving if backward is forward else _Passages(backward, forward, width)
    both = (arriving,) if leaving is arriving else (arriving, leaving)
    # The least number of steps to or from a hub. A row that is i steps away needs the walks of up to length - i steps.
    distance = torch.full((total.size(0),), length, device=total.device)
    distance[:width] = 1
    for steps in range(1, length):
        needed = None if 2 * steps <= length else (distance <= length - steps).nonzero().flatten()
        for passages in both:
            passages.step(needed)
            if needed is None:
                far = (distance > steps).nonzero().flatten()
                distance[far[passages.states[-1].index_select(0, far).amax(1) > 0]] = steps
    arriving.step(torch.arange(width, device=total.device))  # its walks alone, which return to the hub

    closed = [total.new_ones(width)]  # R_0, R_1, ..., each [width]
    for steps in range(1, length + 1):
        closed.append(sum(arriving.returns[i] * closed[steps - 1 - i] for i in range(steps)))  # type: ignore[arg-type]
    total[:width] += torch.stack(closed[1:], dim=1)
    _add_products(total, arriving, leaving, closed, distance)


def _add_products(
    total: Tensor, arriving: _Passages, leaving: _Passages, closed: list[Tensor], distance: Tensor
) -> None:
    """Adds the products of walks to a hub, at it, and back, for all rows that are near enough."""
    length, width = total.size(1), arriving.width
    for least in range(1, length // 2 + 1):
        rows = (distance == least).nonzero().flatten()
        # Walks of s steps to and from the hub, then k - s steps at the hub, make closed walks of k steps.
        spans = length - 2 * least + 1  # values of s, from twice the distance to length, and of k
        at_hub = total.new_zeros(spans, width, spans)
        for s in range(spans):
            for k in range(s, spans):
                at_hub[s, :, k] = closed[k - s]
        at_hub = at_hub.flatten(0, 1)
        to = total.new_empty(spans, _ROWS_AT_ONCE, width)
        back = to if leaving is arriving else torch.empty_like(to)
        to_and_back = total.new_empty(_ROWS_AT_ONCE, spans, width)
        for part in rows.split(_ROWS_AT_ONCE):
            count = part.numel()
            arriving.copy_rows(part, least, to[:, :count])
            if back is not to:
                leaving.copy_rows(part, least, back[:, :count])
            _convolve(to[:, :count], back[:, :count], back is to, to_and_back[:count])
            total[:, 2 * least - 1 :].index_add_(0, part, to_and_back[:count].flatten(1) @ at_hub)


class _Passages:
    """Walks to the hubs, one column each, that visit the hub of the column at their last step only.

    The hub of a column and the hubs before it are not in the graph that its walks continue in: their numbers are 0.
    """

    def __init__(self, matrix: WalkMatrix, transposed: WalkMatrix, width: int) -> None:
        self.matrix, self.transposed, self.width = matrix, transposed, width
        self.states: list[Tensor] = []  # of 1, 2, ... steps, each [rows, width]; in float32 where that is exact
        self.places: list[Tensor | None] = []  # where each row is in the state, if it has some of the rows alone
        self.returns: list[Tensor] = []  # walks of 1, 2, ... steps from the hub to itself, each [width] in float64

    def step(self, rows: Tensor | None = None) -> None:
        """Counts the walks of one more step, from all rows or from `rows`, which begin with all hubs."""
        if not self.states:
            state, rows = self._first(), None
        else:
            matrix = self.matrix if rows is None else self.matrix.select(rows, self.places[-1])
            state = matrix @ self.states[-1]
            if state.dtype == torch.float32 and state.numel() and float(state.max()) >= SINGLE:
                state = matrix @ self.states[-1].double()  # No term is negative, so smaller sums were exact.
        self.returns.append(state[: self.width].diagonal().to(torch.float64, copy=True))
        state[: self.width].tril_(-1)
        place = None
        if rows is not None:  # the row after them is 0, and stands for all others
            place = torch.full_like(self.matrix.ptr[1:], rows.numel())
            place[rows] = torch.arange(rows.numel(), device=rows.device)
        self.states.append(state)
        self.places.append(place)

    def _first(self) -> Tensor:
        end = int(self.transposed.ptr[self.width])
        state = torch.zeros(self.matrix.num_rows, self.width, device=self.matrix.ptr.device)
        entry = self.transposed.entry[:end].to(state.dtype)
        return state.index_put_((self.transposed.column[:end], self.transposed.row[:end]), entry)

    def copy_rows(self, rows: Tensor, first: int, out: Tensor) -> None:
        """Copies the numbers of some rows for `first`, `first + 1`, ... steps to `out`, `[steps, rows, width]`."""
        for i in range(out.size(0)):
            state, place = self.states[first - 1 + i], self.places[first - 1 + i]
            out[i].copy_(state.index_select(0, rows if place is None else place.index_select(0, rows)))


def _convolve(to: Tensor, back: Tensor, same: bool, out: Tensor) -> None:
    """Writes the sums of `to[i] * back[j]` over i + j = s, `[rows, width]` each, to `out[:, s]`."""
    for s in range(to.size(0)):
        total = out[:, s]
        torch.mul(to[0], back[s], out=total)
        if same and s:  # i and j exchanged are the same product
            for i in range(1, (s + 1) // 2):
                total.addcmul_(to[i], back[s - i])
            total.mul_(2)
            if s % 2 == 0:
                total.addcmul_(to[s // 2], to[s // 2])
        elif s:
            for i in range(1, s + 1):
                total.addcmul_(to[i], back[s - i])
