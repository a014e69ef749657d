"""What a case raises, and whether something was done or refused in a sentence."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path


class WrongError(AssertionError):
    """An answer is wrong, or an error is not a sentence."""


def in_a_sentence(work: Callable[[], object]) -> str:
    """Whether something was done or refused in a sentence; any other error is raised."""
    try:
        work()
    except (ValueError, OSError) as error:
        if not str(error).strip():
            raise WrongError(f"a {type(error).__name__} says nothing") from error
        return "refused"
    return "done"


def damage(rng: random.Random, path: Path) -> None:
    """Cuts a file off, changes bytes of it, repeats a part, or empties it."""
    content = bytearray(path.read_bytes())
    kind = rng.choice(("cut", "flip", "bytes", "repeat", "empty", "zeros"))
    place = rng.randrange(len(content)) if content else 0
    if kind == "cut":
        content = content[:place]
    elif kind == "flip" and content:
        content[place] ^= 1 << rng.randrange(8)
    elif kind == "bytes":
        content[place : place + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
    elif kind == "repeat":
        content = content + content[place:]
    elif kind == "zeros":
        content[place : place + 16] = bytes(16)
    else:
        content = bytearray()
    path.write_bytes(bytes(content))
