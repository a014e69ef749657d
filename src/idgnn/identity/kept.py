"""Remembers what was worked out for a graph for as long as that graph lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary


class Kept:
    """Index arithmetic depends on the graph alone; here it is done once per graph, however often a model sees it.

    Entries belong to one tensor (the `edge_index`) and go when it goes. They are not part of a model: copying or
    pickling one leaves them behind.
    """

    def __init__(self) -> None:
        self._entries = WeakTensorKeyDictionary()

    def get(self, owner: Tensor, key: Hashable, make: Callable[[], Any], depends_on: tuple[Tensor, ...] = ()) -> Any:
        """What `make` returned for this tensor and key the first time; it must not refer to the tensor itself.

        It is made again if the tensor, or one of those it depends on besides, was replaced or changed in place; what
        is changed behind PyTorch's back, through `.data` or shared memory, it cannot see.
        """
        if owner.is_inference() or any(tensor.is_inference() for tensor in depends_on):
            return make()  # such tensors do not tell whether they were changed
        entries: dict[Hashable, tuple[Any, Any]] = self._entries.get(owner) or {}
        versions = (owner._version, *(tensor._version for tensor in depends_on))
        if key in entries:
            (known, known_versions), value = entries[key]
            if versions == known_versions and all(a is b for a, b in zip(known, depends_on, strict=True)):
                return value
        with torch.inference_mode(False):  # tensors made in it could not be used in training later
            made = make()
        entries[key] = (depends_on, versions), made
        self._entries[owner] = entries
        return made

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()
