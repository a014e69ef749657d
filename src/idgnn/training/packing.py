"""Values made of many tensors as a few long ones: so they go from process to process, and to a GPU, in one piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

_ALIGN = 16  # elements: kernels read several at once where a tensor begins at a round address


@dataclass(frozen=True)
class _Slot:
    """The place of a tensor."""

    number: int


@dataclass(frozen=True)
class Packed:
    """A value whose tensors are cut out of a long one for each dtype."""

    value: Any
    flat: dict[torch.dtype, Tensor]
    where: list[tuple[torch.dtype, int, torch.Size]]  # of each slot

    def unpack(self, device: torch.device | str | None = None) -> Any:
        """The value, with its tensors on a device. A tensor that was there twice is there twice again."""
        flat = {dtype: values.to(device) for dtype, values in self.flat.items()}
        tensors = [flat[dtype][first : first + shape.numel()].view(shape) for dtype, first, shape in self.where]
        return _walk(self.value, lambda slot: tensors[slot.number])


def pack(value: Any) -> Packed:
    """Packs dataclasses, tuples and dictionaries of tensors, nested in any way; anything else stays as it is."""
    found: list[Tensor] = []
    number: dict[int, int] = {}

    def slot(tensor: Tensor) -> _Slot:
        if id(tensor) not in number:
            number[id(tensor)] = len(found)
            found.append(tensor)
        return _Slot(number[id(tensor)])

    emptied = _walk(value, slot)
    where, size = [], dict.fromkeys((tensor.dtype for tensor in found), 0)
    for tensor in found:
        where.append((tensor.dtype, size[tensor.dtype], tensor.shape))
        size[tensor.dtype] += -(-tensor.numel() // _ALIGN) * _ALIGN
    flat = {dtype: torch.empty(total, dtype=dtype) for dtype, total in size.items()}
    for tensor, (dtype, first, _) in zip(found, where, strict=True):
        flat[dtype][first : first + tensor.numel()] = tensor.flatten()
    return Packed(emptied, flat, where)


def _walk(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Tensor | _Slot):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_walk(each, change) for each in value)
    if isinstance(value, dict):
        return {key: _walk(each, change) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _walk(getattr(value, each.name), change) for each in fields(value)})
    return value
