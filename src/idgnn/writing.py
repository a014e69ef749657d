"""Files that are either there as a whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from safetensors import SafetensorError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it takes the name `path` if all goes well, and is gone otherwise."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")  # of its own: others may write the same file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        mode = temporary.stat().st_mode  # safetensors would leave a file that its owner alone may read
        yield temporary
        temporary.chmod(mode)
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"{path} cannot be written: {reason.lower()}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Deletes the temporary files that killed processes left in a folder; nobody may be writing to it."""
    for path in folder.glob(".*.part"):
        if re.fullmatch(r"\..+\.[0-9a-f]{8}\.part", path.name) and path.is_file():
            path.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes a text file as a whole."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
