"""What `torch.compile` is to leave alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

F = TypeVar("F", bound=Callable[..., Any])


def eager(function: F) -> F:
    """`torch.compiler.disable`, with the type of the function kept."""
    return cast(F, torch.compiler.disable(function))
