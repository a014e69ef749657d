"""How all kernels are compiled and launched."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import triton  # pyright: ignore[reportMissingImports] (not there without CUDA)
from torch import Tensor

_INT32 = 2**31


def jit(names: str) -> Callable[[Callable[..., None]], Kernel]:
    """Compiles a kernel whose arguments have these names, once for all their values and alignments."""
    return lambda function: Kernel(function, names.split())


class Kernel:
    """A kernel that Triton looks up once for each kind of arguments.

    Triton works out the types of all arguments and the text of all options in every launch, most of what a launch takes
    on the host. No argument is specialized, so a kind is the dtypes of the tensors, the width of the numbers and the
    constants; from the second call of a kind on, what was compiled is launched as it is.
    """

    def __init__(self, function: Callable[..., None], names: list[str]) -> None:
        self.function: Any = triton.jit(function, do_not_specialize=names, do_not_specialize_on_alignment=names)
        self.parameters = list(inspect.signature(function).parameters)
        self.compiled: dict[tuple[Any, ...], Any] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        """Launches so many programs: `kernel[grid](*arguments, **constants)`."""

        def launch(first: Tensor, *others: Tensor | int, num_warps: int = 4, **constants: Any) -> None:
            kinds = [each.dtype if isinstance(each, Tensor) else -_INT32 <= each < _INT32 for each in others]
            values = [constants[name] for name in self.parameters[1 + len(others) :]]
            kind = (first.get_device(), first.dtype, num_warps, *kinds, *values)
            found = self.compiled.get(kind)
            if found is None:  # Triton's interpreter, which compiles nothing, always gives none
                self.compiled[kind] = self.function[grid](first, *others, num_warps=num_warps, **constants)
            else:
                found[(*grid, 1, 1)[:3]](first, *others, *values)

        return launch
