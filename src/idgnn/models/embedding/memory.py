"""How much memory an embedding may take, and how it is shared out."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from numbers import Real

import torch

from idgnn.identity.cost import free_memory

_UNITS = {"": 1} | {
    f"{letter}{binary}": (1024 if binary else 1000) ** power
    for power, letter in enumerate("KMGT", 1)
    for binary in ("", "I")
}
# Of what is free; the rest is for what others do meanwhile.
_SHARE = 0.5


def as_bytes(memory: float | str | None, device: torch.device) -> int:
    """A number of bytes, or a size such as `"4GiB"`; `None` is half of what is free on the device.

    Example:
        >>> as_bytes("1.5 GiB", torch.device("cpu")) == 3 * 2**29
        True
    """
    if memory is None:
        return int(_SHARE * free_memory(device))
    size = _size_of(memory) if isinstance(memory, str) else float(memory) if isinstance(memory, Real) else 0.0
    if isinstance(memory, bool) or not 1 <= size < math.inf:
        raise ValueError(
            f"memory is {memory!r}, expected a number of bytes or a size such as '512MiB' or '4GiB': what embedding "
            "may take. Leave it out for half of what is free."
        )
    return int(size)


def _size_of(text: str) -> float:
    """0 for what is no size."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]I?)?B?\s*", text.upper())
    return 0.0 if match is None else float(match[1]) * _UNITS[match[2] or ""]


@dataclass(frozen=True)
class Prices:
    """Bytes, by what they are spent on.

    On a ring of 30,000 nodes of degree 10, where the bounds on rows and edges are tight, chunks of 0.4 and 0.7 GB took
    55 to 88 % of what these say (GIN, K = 3, width 64, resident memory of the process).
    """

    row: int  # of a chunk, while a round is computed
    edge: int  # between rows of a chunk that is looked at
    message: int  # of a part of a round


def prices(width: int, item: int) -> Prices:
    """For a network of that width with numbers of `item` bytes."""
    state = width * item
    return Prices(row=8 * state + 160, edge=120, message=4 * state + 160)
