"""Methods of one object replaced for the duration of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def shadowed(owner: object, **methods: Callable[..., Any]) -> Iterator[None]:
    """Within the block `owner.name(...)` calls the given function; the class and every other object stay as they are.

    Example:
        >>> class Door:
        ...     def open(self):
        ...         return "open"
        >>> door = Door()
        >>> with shadowed(door, open=lambda: "locked"):
        ...     door.open()
        'locked'
        >>> door.open()
        'open'
    """
    attributes = vars(owner)
    kept = {name: attributes[name] for name in methods if name in attributes}
    attributes.update(methods)
    try:
        yield
    finally:
        for name in methods:
            attributes.pop(name)
        attributes.update(kept)
