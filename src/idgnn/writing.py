"""Files that are written as a whole or not at all."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from safetensors import SafetensorError

# Errors of a write to a file that is open already: they do not name the file.
_WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it is renamed to `path` if the block succeeds, and deleted otherwise.

    An error of writing it becomes a ValueError that names `path`. Other errors of the block are raised unchanged.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")  # unique: other processes may write `path` too
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        mode = temporary.stat().st_mode  # safetensors would leave a file that only its owner may read
        yield temporary
        temporary.chmod(mode)
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        if not _is_write_error(error, temporary):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"{path} cannot be written: {reason.lower()}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _is_write_error(error: OSError | SafetensorError, temporary: Path) -> bool:
    """Whether the error is about the temporary file or its folder, and not about another file."""
    if isinstance(error, SafetensorError):
        return "deserializing" not in str(error)  # that would be the error of a file that was read
    if error.filename is None:
        return error.errno in _WRITE_ERRORS
    return Path(error.filename) in (temporary, *temporary.parents)


def remove_leftovers(folder: Path) -> None:
    """Deletes the temporary files that killed processes left in a folder; no process may be writing to it."""
    for path in folder.glob(".*.part"):
        if re.fullmatch(r"\..+\.[0-9a-f]{8}\.part", path.name) and path.is_file():
            path.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes a text file as a whole."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
