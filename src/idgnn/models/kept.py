"""Remembers what was worked out for a graph for as long as that graph lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary


class Kept:
    """Index arithmetic depends on the graph alone; here it is done once per graph, however often a model sees it.

    Entries belong to one tensor (the `edge_index`) and go when it goes. They are not part of a model: copying or
    pickling one leaves them behind.
    """

    def __init__(self) -> None:
        self._entries = WeakTensorKeyDictionary()

    def get(self, owner: Tensor, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` returned for this tensor and key the first time; it must not refer to the tensor itself."""
        entries: dict[Hashable, tuple[int, Any]] = self._entries.get(owner) or {}
        if key not in entries or entries[key][0] != owner._version:  # not there, or changed in place since
            entries[key] = (owner._version, make())
            self._entries[owner] = entries
        return entries[key][1]

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()
