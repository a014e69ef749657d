r"""What K rounds of heterogeneous message passing compute, as index tensors: which rows, from which rows.

A layer needs to know nothing of identity graphs or ego networks. It is handed a :class:`Round`: messages from source
rows to target rows, those of plain and those of colored sources apart, because they have different weights (Eq. 3).
:func:`trimmed` keeps, in every round, only the rows that matter: at depth `k` a row :math:`(u|v)` has a state of its
own only once the color has arrived, :math:`d(v, u) \le k`, and only while the answer can depend on it.
:func:`whole` is its plain twin: all rows in all rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import Adjacency, groups, incoming, outgoing, pointers
from idgnn.identity.identity_graph import IdentityGraph
from idgnn.identity.rows import Rows

HUB = 2048  # messages: a target or a source that has more is worth taking apart on a GPU


@dataclass(frozen=True)
class Messages:
    """Messages grouped by target: target `t` receives those of `source[ptr[t]:ptr[t + 1]]`."""

    source: Tensor  # [messages]
    ptr: Tensor  # [targets + 1]
    edge: Tensor  # [messages] the edge of the original graph it travels on; edge E + i is the self-loop of node i
    back: Adjacency  # the same by source, for gradients: ptr, target, position in `source`
    hubs: bool  # whether a target or a source may have more than HUB of them

    @property
    def target(self) -> Tensor:
        """The target of each message: `[messages]`."""
        return groups(self.ptr, self.source.numel())


@dataclass(frozen=True)
class Round:
    """One round of message passing. Sources `[:split]` send plain messages, sources `[split:]` colored ones."""

    num_sources: int
    num_targets: int
    split: int
    plain: Messages
    colored: Messages  # its sources are counted from `split` on
    previous: Tensor  # [targets] the source row that holds the target's own state before this round

    @property
    def has_color(self) -> bool:
        """Whether any colored message is sent."""
        return self.colored.source.numel() > 0

    def apart(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The states of plain and of colored sources."""
        # One split: the gradient of two slices would be two tensors of the full size, mostly zeros.
        plain, colored = x.split([self.split, self.num_sources - self.split])
        return plain, colored


@dataclass(frozen=True)
class Schedule:
    """All rounds of a network: it starts from one row for each of `node` and ends with the answers."""

    node: Tensor  # [rows] the nodes whose features the rows of the first round start with
    rounds: tuple[Round, ...]
    answer: Tensor  # [queries] the target of the last round that answers each query


def trimmed(graph: IdentityGraph, num_layers: int, first_loop: int | None = None) -> Schedule:
    """The rows of an identity graph that each round needs, found backwards from the answers.

    With `first_loop`, the number of edges of the original graph, every row has exactly one self-loop; it travels on
    edge `first_loop + node`.
    """
    into = with_loops(Rows.of(graph), first_loop)
    plain_of = graph.plain_row[graph.node]

    def heard(targets: Tensor, depth: int) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        # Before the color arrives, a row's state is the plain one and is read there.
        every = torch.arange(graph.arrival.numel(), device=targets.device)
        state = torch.where(graph.arrival <= depth, every, plain_of)
        owner, position = into.expand(targets)
        return (state[into.neighbor[position]], owner, into.edge[position]), state[targets]

    return backwards(heard, graph.query_row, graph.node, graph.colored, num_layers)


Heard = Callable[[Tensor, int], tuple[tuple[Tensor, Tensor, Tensor], Tensor]]
"""Of target rows and a depth: the messages into them (source row, number of the target, edge), and for each target the
row that holds its own state at that depth."""


def backwards(heard: Heard, query_row: Tensor, node: Tensor, colored: Tensor, num_layers: int) -> Schedule:
    """The rows that each round needs, found backwards from those that answer: `query_row` `[queries]`.

    Of every row, `node` is the node that it is a copy of, and `colored` whether its messages are.
    """
    targets, answer = torch.unique(query_row, return_inverse=True)
    rounds: list[Round] = []
    for depth in range(num_layers - 1, -1, -1):
        (source, owner, edge), previous = heard(targets, depth)
        needed = torch.zeros_like(colored)
        needed[source] = True
        needed[previous] = True
        sources, place = _plain_first(needed, colored)
        split = sources.numel() - int(colored[sources].sum())
        rounds.append(_round((place[source], owner, edge), place[previous], split, sources.numel()))
        targets = sources
    return Schedule(node[targets], tuple(reversed(rounds)), answer)


def whole(rows: Rows, num_layers: int, first_loop: int | None = None) -> Schedule:
    """Every row of an identity graph, or of ego networks, in every round: the plain twin of :func:`trimmed`."""
    into = with_loops(rows, first_loop)
    order, place = _plain_first(torch.ones_like(rows.colored), rows.colored)
    owner, position = into.expand(order)
    every = torch.arange(order.numel(), device=order.device)
    split = order.numel() - int(rows.colored.sum())
    round_ = _round((place[into.neighbor[position]], owner, into.edge[position]), every, split, order.numel())
    return Schedule(rows.node[order], (round_,) * num_layers, place[rows.query_row])


def with_loops(rows: Rows, first_loop: int | None) -> Adjacency:
    """The in-neighbors of every row; with `first_loop` each row has exactly one self-loop, and it comes last."""
    edge_index, edge = rows.edge_index, rows.edge
    if first_loop is not None:
        apart = edge_index[0] != edge_index[1]
        every = torch.arange(rows.node.numel(), device=edge.device)
        edge_index = torch.cat([edge_index[:, apart], every.expand(2, -1)], dim=1)
        edge = torch.cat([edge[apart], first_loop + rows.node])
    into = incoming(edge_index, rows.node.numel())
    return Adjacency(into.ptr, into.neighbor, edge[into.edge])


def _plain_first(needed: Tensor, colored: Tensor) -> tuple[Tensor, Tensor]:
    """The needed rows, plain ones first, and the place of each row among them."""
    rows = torch.cat([(needed & ~colored).nonzero().flatten(), (needed & colored).nonzero().flatten()])
    place = torch.zeros_like(colored, dtype=torch.long)
    place[rows] = torch.arange(rows.numel(), device=rows.device)
    return rows, place


def _round(messages: tuple[Tensor, Tensor, Tensor], previous: Tensor, split: int, num_sources: int) -> Round:
    """Puts the messages (source, target, edge), sorted by target, of plain and of colored sources apart."""
    source, target, edge = messages
    num_targets = previous.numel()
    plain = source < split
    return Round(
        num_sources,
        num_targets,
        split,
        _messages(source[plain], target[plain], edge[plain], split, num_targets),
        _messages(source[~plain] - split, target[~plain], edge[~plain], num_sources - split, num_targets),
        previous,
    )


def _messages(source: Tensor, target: Tensor, edge: Tensor, num_sources: int, num_targets: int) -> Messages:
    back = outgoing(torch.stack([source, target]), num_sources)
    ptr = pointers(target, num_targets)
    return Messages(source, ptr, edge, back, has_hubs(source.numel(), ptr, back.ptr))


def has_hubs(num_messages: int, *ptrs: Tensor) -> bool:
    """Whether, of so many messages, more than `HUB` are in one group of these pointers."""
    return num_messages > HUB and any(bool((ptr.diff() > HUB).any()) for ptr in ptrs)
