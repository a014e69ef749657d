"""Batches of graphs packed one behind the other, for networks that pass messages between nodes or sets of nodes.

A graph has *spaces*: nodes, edges, pairs of nodes, ... A space has values, and pointers into other spaces, which are
worked out once for each graph. A batch copies the rows of its graphs and shifts the pointers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Space:
    """One space of one graph."""

    size: int
    values: Mapping[str, Tensor] = field(default_factory=dict)  # [size, ...]
    points: Mapping[str, tuple[str, Tensor]] = field(default_factory=dict)  # the other space; [size, ...] rows of it
    states: bool = True
    """Whether its rows have states, which weights act on: they are padded to the same number in all copies."""


@dataclass(frozen=True)
class PackedSpace:
    """One space of a batch. Rows of all copies lie behind each other; where there are states, each copy has as many."""

    values: dict[str, Tensor]  # [rows, ...]
    points: dict[str, Tensor]  # [rows, ...] rows of the other space; of padding 0
    graph: Tensor  # [rows] of the batch, counted over all copies; of padding 0
    real: Tensor  # [rows] which are no padding
    copies: int

    def stacked(self, rows: Tensor) -> Tensor:
        """`[rows, ...]` as `[copies, rows of a copy, ...]`."""
        return rows.unflatten(0, (self.copies, -1))


@dataclass(frozen=True)
class PackedBatch:
    """A batch: its spaces by name."""

    spaces: dict[str, PackedSpace]
    copies: int
    num_graphs: int  # of each copy

    def __getitem__(self, name: str) -> PackedSpace:
        return self.spaces[name]

    def pool(self, name: str, x: Tensor, mean: bool = False) -> Tensor:
        """The sum or mean over the rows of each graph: `[copies, rows, channels]` to `[copies, graphs, channels]`."""
        space = self[name]
        rows = x.flatten(0, 1) * space.real.unsqueeze(-1)
        total = rows.new_zeros(self.copies * self.num_graphs, x.size(-1)).index_add(0, space.graph, rows)
        if mean:
            number = total.new_zeros(total.size(0)).index_add(0, space.graph, space.real.to(total.dtype))
            total = total / number.clamp(min=1).unsqueeze(-1)
        return total.unflatten(0, (self.copies, self.num_graphs))


class PackedGraphs:
    """All graphs of a dataset on a device, from which batches are copied.

    Args:
        graphs: The spaces of each graph, the same names in all.
        device: Where they lie.
    """

    def __init__(self, graphs: Sequence[Mapping[str, Space]], device: torch.device | str) -> None:
        self.device, first = torch.device(device), graphs[0]
        self.states = {name: space.states for name, space in first.items()}
        # The last is no graph: id -1.
        self.size = {name: torch.tensor([*(graph[name].size for graph in graphs), 0]) for name in first}
        self.start = {name: size.cumsum(0) - size for name, size in self.size.items()}
        self.values = {
            name: {each: torch.cat([graph[name].values[each] for graph in graphs]).to(device) for each in space.values}
            for name, space in first.items()
        }
        self.points = {
            name: {
                each: (to, torch.cat([graph[name].points[each][1] for graph in graphs]).to(device))
                for each, (to, _) in space.points.items()
            }
            for name, space in first.items()
        }

    def batch(self, ids: Tensor) -> PackedBatch:
        """The graphs of these ids `[copies, graphs]`, on the CPU; -1 for none. All sizes are known on the CPU."""
        copies = ids.size(0)
        counts = {name: size[ids] for name, size in self.size.items()}  # [copies, graphs]
        most = {name: max(int(count.sum(1).max()), 1) for name, count in counts.items()}
        begin = {name: self._begin(name, count, most[name]) for name, count in counts.items()}
        numbers = torch.stack([torch.stack([counts[name], self.start[name][ids], begin[name]]) for name in counts])
        numbers = numbers.flatten(2).to(self.device, non_blocking=True)  # [spaces, 3, copies * graphs]
        first = dict(zip(counts, numbers[:, 2], strict=True))
        spaces = {}
        for (name, count), (length, start, place) in zip(counts.items(), numbers, strict=True):
            total = int(count.sum())
            graph = torch.repeat_interleave(length, output_size=total)  # of each row
            within = torch.arange(total, device=self.device) - (length.cumsum(0) - length)[graph]
            source = start[graph] + within
            rows = copies * most[name] if self.states[name] else total
            to = place[graph] + within

            def put(values: Tensor, rows: int = rows, to: Tensor = to) -> Tensor:
                return values.new_zeros(rows, *values.shape[1:]).index_copy(0, to, values)

            spaces[name] = PackedSpace(
                {each: put(values[source]) for each, values in self.values[name].items()},
                {
                    each: put(at[source] + first[target][graph].view(-1, *[1] * (at.dim() - 1)))
                    for each, (target, at) in self.points[name].items()
                },
                put(graph),
                put(torch.ones_like(graph, dtype=torch.bool)),
                copies,
            )
        return PackedBatch(spaces, copies, ids.size(1))

    def _begin(self, name: str, count: Tensor, most: int) -> Tensor:
        """The row where each graph begins `[copies, graphs]`."""
        if not self.states[name]:
            return (count.flatten().cumsum(0) - count.flatten()).view_as(count)
        return count.cumsum(1) - count + most * torch.arange(count.size(0)).unsqueeze(1)
