"""Settings with a few possible values, and numbers, checked when they are made. Imports no PyTorch."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args, get_origin, get_type_hints


def check_choices(settings: Any) -> None:
    """Refuses a value that is none of those that the `Literal` of its field names."""
    for name, kind in get_type_hints(type(settings)).items():
        if get_origin(kind) is Literal and getattr(settings, name) not in get_args(kind):
            raise ValueError(
                f"{name} is {getattr(settings, name)!r}, expected one of {', '.join(map(str, get_args(kind)))}."
            )


def check_counts(settings: Any, names: tuple[str, ...], least: int = 1) -> None:
    """Refuses what is not a whole number of at least `least`."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is {value!r}, expected a whole number of at least {least}.")


def check_numbers(settings: Any, names: tuple[str, ...]) -> None:
    """Refuses what is not a finite number."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}, expected a finite number.")
