"""The warning of queries that no color reaches, which points to the user's own line."""

from __future__ import annotations

import inspect
import os
import warnings

import torch
import torch_geometric

_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep
    for file in (os.path.dirname(__file__), torch.__file__, torch_geometric.__file__)
)  # ours, and those that call it or that it calls itself through


class UnreachedColorWarning(UserWarning):
    """Some queries read a node that the color cannot reach in K rounds; they are answered by the plain GNN."""


def warn_unreached(number: int, total: int, num_layers: int) -> None:
    """Warns of queries that no color reaches, if there are any."""
    if number:
        warnings.warn(
            f"{number} of {total} queries read a node that lies more than {num_layers} steps from the colored one: no "
            "color arrives there, and the answer is the plain GNN's. Use more layers to tell such pairs apart.",
            UnreachedColorWarning,
            stacklevel=_user_level() - 1,
        )


def _user_level() -> int:
    """How many calls lie between the user's code and this function, both counted; all if there is no such code."""
    frame, level = inspect.currentframe(), 0
    while frame is not None:
        level += 1
        if not os.path.abspath(frame.f_code.co_filename).startswith(_LIBRARIES):
            break
        frame = frame.f_back
    return level
