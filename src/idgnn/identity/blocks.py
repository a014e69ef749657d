r"""Blocks of messages into one node, whose aggregates are shared by all rows of that node.

Rows :math:`(u|v)` of a hub `u` under many colors `v` receive almost the same messages: only those that the color
changes differ. With the plain messages into `u` cut into blocks of `BLOCK`, a row takes the aggregate of each block
that has no changed message, and single messages of the others: about `degree / BLOCK + BLOCK` in place of `degree`.
That is for maxima and softmaxes, which cannot take a message out of an aggregate as a sum can
(:class:`idgnn.identity.schedule.Exchange`); nothing is subtracted, so no digits are lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph, spread

# Messages in a block. On Gowalla and on a scale-free graph of 100,000 nodes, rows of one changed message then receive
# 4 and 8 times fewer messages than there are edges; with 8 or 32 it is less on one of the two.
BLOCK = 16
# A row takes blocks where that is so many times fewer messages.
LEAST_GAIN = 2
_BLOCKS = "blocks"  # in the cache of a graph


@dataclass(frozen=True)
class BlockLists:
    """The in-lists of the nodes with at least two full blocks, cut into blocks; other nodes have none."""

    ptr: Tensor  # [num_nodes + 1] the blocks of each node
    begin: Tensor  # [blocks] where its messages begin in the flat lists `into` of the graph
    size: Tensor  # [blocks] how many they are
    node: Tensor  # [blocks]
    sender: Tensor  # [edges + blocks] the in-neighbors of the flat lists, and behind them block b as -1 - b

    def expand(self, blocks: Tensor) -> tuple[Tensor, Tensor]:
        """All messages of some blocks: which of them each belongs to, and its position in the flat lists."""
        return spread(self.begin.index_select(0, blocks), self.size.index_select(0, blocks))


def block_lists(graph: IndexedGraph) -> BlockLists:
    """The blocks of a graph: worked out once for it."""
    if _BLOCKS not in graph.cache:
        into = graph.into
        count = torch.where(into.degree >= 2 * BLOCK, (into.degree + BLOCK - 1) // BLOCK, 0)
        node, number = spread(torch.zeros_like(count), count)
        begin = into.ptr.index_select(0, node) + BLOCK * number
        size = (into.ptr.index_select(0, node + 1) - begin).clamp(max=BLOCK)
        ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
        sender = torch.cat([into.neighbor, -1 - torch.arange(node.numel(), device=node.device)])
        graph.cache[_BLOCKS] = BlockLists(ptr, begin, size, node, sender)
    return graph.cache[_BLOCKS]


@dataclass(frozen=True)
class Runs:
    """What targets receive: runs of positions in :attr:`BlockLists.sender`, sorted by target."""

    target: Tensor | None  # [runs]; None: run i is all that target i receives, and no run is a block
    first: Tensor  # [runs] position
    count: Tensor  # [runs]
    changed: Tensor  # [changed] where each changed message is, counted over all runs


def runs_of(
    graph: IndexedGraph, nodes: Tensor, target: Tensor, offset: Tensor, may: Tensor | None, known: bool
) -> Runs:
    """The messages into rows of some nodes, or the blocks that they are in.

    Args:
        graph: The graph.
        nodes: The node of each target `[targets]`.
        target: The target of each changed message `[changed]`.
        offset: The how-manieth of all messages into its target it is `[changed]`.
        may: Whether each target may take blocks `[targets]`; `None`: none may.
        known: Whether the aggregates of all blocks are known. If not, those that are taken have to be computed.
    """
    into = graph.into
    begin, degree = into.ptr.index_select(0, nodes), into.degree_of(nodes)
    messages = Runs(None, begin, degree, (degree.cumsum(0) - degree).index_select(0, target) + offset)
    if may is None or not bool(may.any()):
        return messages
    lists = block_lists(graph)
    num_blocks = lists.ptr.index_select(0, nodes + 1) - lists.ptr.index_select(0, nodes)
    # At most: two changed messages may be in one block.
    cost = num_blocks + BLOCK * torch.bincount(target, minlength=nodes.numel())
    takes = may & (num_blocks > 0) & (LEAST_GAIN * cost <= degree)
    if not known:
        saved = torch.zeros_like(into.ptr).index_add_(0, nodes, torch.where(takes, degree - cost, 0))
        takes &= saved.index_select(0, nodes) >= degree * bool(LEAST_GAIN)
    if not bool(takes.any()):
        return messages
    # Every target has one run, or one for each block.
    count = torch.where(takes, num_blocks, 1)
    owner, number = spread(torch.zeros_like(count), count)
    in_block = takes.index_select(0, target)
    within = torch.where(in_block, offset // BLOCK, 0)
    run = (count.cumsum(0) - count).index_select(0, target) + within
    single = ~takes.index_select(0, owner)
    whole = single.clone()
    single[run] = True
    node = nodes.index_select(0, owner)
    block = torch.where(whole, 0, lists.ptr.index_select(0, node) + number)
    size = torch.where(whole, degree.index_select(0, owner), lists.size.index_select(0, block))
    first = torch.where(single, begin.index_select(0, owner) + BLOCK * number, into.neighbor.numel() + block)
    size = torch.where(single, size, 1)
    return Runs(owner, first, size, (size.cumsum(0) - size).index_select(0, run) + offset - BLOCK * within)
