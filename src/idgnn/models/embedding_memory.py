"""Bytes that embedding a graph takes, and how much of the memory is left for each chunk of queries."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from idgnn.identity.blocks import BLOCK
from idgnn.identity.cost import TooLargeError, free_memory, readable
from idgnn.layers.operator import LinearSumOperator
from idgnn.models.inputs import Inputs

if TYPE_CHECKING:
    from idgnn.models.idgnn import IDGNN
    from idgnn.models.inputs import AnyEncoder

# Of what is free; the rest is for other work on the machine.
_SHARE = 0.5
# An edge in both directions: the key and two ids, two ids; and while that is sorted, about as much again.
_EDGE_BYTES = 80
# Bytes of a chunk on a CPU, whose cache a larger one exceeds. Layers that sum take less at once: GIN on Gowalla's
# training graph (K = 3, width 64, one thread) took 4.1 s with 2^26, 5.5 s with 2^28 and 4.6 s with 2^25. Where rows
# share blocks of messages, every chunk looks them up among all: SAGE and GAT took twice as long or more with 2^26.
CPU_CHUNK, _CPU_CHUNK_OF_SUMS = 2**28, 2**26
# Chunks that are worked on at once. More threads would wait for the Python interpreter, which takes a tenth of a chunk.
_MOST_THREADS = 8
_LOOKED_AT = 32
MORE = 2.1
"""Bytes to ask for, per byte that the room lacks: the room is half of what is left, and sizes are printed rounded."""
_UNITS = {"": 1} | {
    f"{letter}{binary}": (1024 if binary else 1000) ** power
    for power, letter in enumerate("KMGT", 1)
    for binary in ("", "I")
}


class Budget:
    """Bytes that a network takes, by what they are spent on, and what is left for chunks beside all that is kept.

    On a ring of 30,000 nodes of degree 10, where the bounds on rows and edges are tight, chunks of 0.4 and 0.7 GB took
    55 to 88 % of what these say (GIN, K = 3, width 64, resident memory of the process).
    """

    edge = 120  # between rows of a chunk that is looked at

    def __init__(self, model: AnyEncoder, inputs: Inputs, memory: int) -> None:
        num_edges, operator, num_layers = inputs.edge_index.size(1), model.operator, model.num_layers or 1
        width = max((max(weight.shape) for weight in model.parameters() if weight.dim() > 1), default=1)
        if operator is not None:
            width = cast("IDGNN", model).settings["hidden_channels"]
        state, named = width * inputs.x.element_size(), operator is not None
        self.row = 8 * state + 160  # of a chunk, while a round is computed
        # Of a part of a round: its indices, and where messages differ from edge to edge the messages themselves.
        self.message = 4 * state + 160 if operator is None or operator.takes_edge_attr else 200
        # Plain states before and after each round, the result, and the messages and sums of layers that sum.
        arrays = num_layers + 2
        if model.identity == "full" and operator is not None and operator.sums:
            linear = isinstance(operator, LinearSumOperator)  # one array of messages; GIN's sums with own states
            arrays += num_layers + (1 + num_layers * bool(operator.own_weight) if linear else num_layers)
        kept = arrays * inputs.num_nodes * state + (num_edges + inputs.num_nodes) * _EDGE_BYTES
        if model.identity == "full" and operator is not None and operator.takes_blocks:
            # Their aggregates, and their numbers behind the in-neighbors.
            kept += num_layers * 2 * num_edges // BLOCK * state + 8 * num_edges
        busiest = int(torch.bincount(inputs.edge_index[1], minlength=1).max()) + 1
        least = 2 * self.message * (busiest if named else num_edges)
        if memory < kept + least:
            where = f"the busiest node, {busiest:,} of them," if named else f"all nodes, {num_edges:,} of them,"
            raise TooLargeError(
                f"memory is {readable(memory)}, but the plain states and the edges of {inputs.num_nodes:,} nodes take "
                f"{readable(kept)}, and the messages into {where} {readable(least)}: expected at least "
                f"{readable(kept + least)}. Give more (memory=..., --memory), or, if there are many graphs, take fewer "
                "of them at a time."
            )
        self.room = (memory - kept if named else memory - kept - least / 2) / 2
        on_cpu = _CPU_CHUNK_OF_SUMS if operator is not None and operator.sums else CPU_CHUNK
        cpu = inputs.x.device.type == "cpu"
        # Many small operations on indices take most of the time, which one thread does as fast as several.
        self.num_threads = min(torch.get_num_threads(), _MOST_THREADS) if cpu and named else 1
        self.chunk = min(self.room / self.num_threads, on_cpu) if cpu else self.room

    def cost(self, rows: Tensor, between: Tensor, edges: Tensor, sums: bool) -> Tensor:
        """Bytes of chunks with so many rows, edges looked at between them, and edges into them.

        Layers that sum (`sums`) do not receive the messages over all edges into rows again.
        """
        cost = rows * self.row + between * self.edge
        return cost if sums else cost + edges * self.message


def largest_beyond(room: float, bound: Tensor, cost_of: Callable[[int], float]) -> tuple[int, float] | None:
    """The place and the bytes of the most expensive item, if one takes more than the room.

    Args:
        room: Bytes for a single item.
        bound: What each item takes at most.
        cost_of: What an item takes. It is worked out, so once an item is found that does not fit, few more are looked
            at, in the order of their bounds.
    """
    large, looked = (bound > room).nonzero().flatten(), 0
    found: tuple[int, float] | None = None
    for place in large[bound[large].argsort(descending=True)].tolist():
        if found is not None and (looked == _LOOKED_AT or float(bound[place]) <= found[1]):
            break
        cost, looked = cost_of(place), looked + 1
        if cost > (room if found is None else found[1]):
            found = place, cost
    return found


def as_bytes(memory: float | str | None, device: torch.device) -> int:
    """A number of bytes, or a size such as `"4GiB"`; `None` is half of what is free on the device.

    Example:
        >>> as_bytes("1.5 GiB", torch.device("cpu")) == 3 * 2**29
        True
    """
    if memory is None:
        return int(_SHARE * free_memory(device))
    size = float(memory) if isinstance(memory, Real) else 0.0
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]I?)?B?\s*", memory.upper())
        size = 0.0 if match is None else float(match[1]) * _UNITS[match[2] or ""]
    if isinstance(memory, bool) or not 1 <= size < math.inf:
        raise ValueError(
            f"memory is {memory!r}, expected a number of bytes or a size such as '512MiB' or '4GiB': what embedding "
            "may take. Leave it out for half of what is free."
        )
    return int(size)
