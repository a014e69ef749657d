"""Values that belong to the memory of tensors."""

from __future__ import annotations

import threading
from typing import Any, Generic, TypeVar

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

V = TypeVar("V")


class StorageDict(Generic[V]):
    """A dictionary whose keys are the storages of tensors: views and detached copies of a tensor have the same entry.

    Entries are dropped some time after their memory was freed. Copies and pickles are empty.

    Example:
        >>> import torch
        >>> edge_index, names = torch.tensor([[0], [1]]), StorageDict()
        >>> names.put(edge_index, "edges")
        >>> names.get(edge_index.detach()), names.get(edge_index.clone())
        ('edges', None)
    """

    def __init__(self) -> None:
        self._entries: dict[Any, tuple[Any, V]] = {}
        self._limit = 8
        self._lock = threading.Lock()

    def get(self, tensor: Tensor) -> V | None:
        """The value of the tensor's memory, if it has one."""
        entry = self._entries.get(_identify(tensor)[0])
        return None if entry is None else entry[1]

    def put(self, tensor: Tensor, value: V) -> None:
        """Sets the value of the tensor's memory."""
        key, reference = _identify(tensor)
        with self._lock:
            self._entries[key] = reference, value
            if len(self._entries) > self._limit:
                freed = [k for k, (r, _) in self._entries.items() if isinstance(r, StorageWeakRef) and r.expired()]
                for key in freed:
                    del self._entries[key]
                self._limit = 2 * len(self._entries) + 8

    def __reduce__(self) -> tuple[type[StorageDict[Any]], tuple[()]]:
        return StorageDict, ()


def _identify(tensor: Tensor) -> tuple[Any, Any]:
    """A key, and a reference that keeps the key from being used again, but not the memory from being freed."""
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, and other tensors without a storage of their own
        return id(tensor), tensor
    return storage._cdata, StorageWeakRef(storage)
