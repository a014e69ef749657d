"""What training needs of a peer: a network for some copies, and a store of graphs that batches are taken from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn


class GraphStore(Protocol):
    """All graphs of a dataset, prepared once, on the device."""

    def batch(self, ids: Tensor) -> Any:
        """What the network is run on for graphs `[copies, graphs]`, ids on the CPU, -1 for none."""
        ...


@dataclass(frozen=True)
class Peer:
    """A peer for a dataset."""

    network: Callable[[int], nn.Module]
    """Makes the network with the weights of so many copies; it turns a batch into `[copies, graphs, num_classes]`."""
    store: Callable[[torch.device | str], GraphStore]
    """Prepares all graphs for a device."""
