"""Which jobs of a store are being run, so that several processes share them. Imports no PyTorch."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

CLAIMS = "claims"


class Claims:
    """A locked file for each job that a process runs. The system frees the locks of a process however it ends.

    Two calls of `idgnn reproduce` with one store so never run the same job at the same time, and a job whose process
    was killed is free again. The store may be on a file system of several machines if that has locks. Without locks
    (Windows) every job is free.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ours, theirs = Claims(Path(folder)), Claims(Path(folder))
        ...     found = [ours.take("a"), theirs.take("a"), theirs.take("b")]
        ...     ours.release("a")
        ...     found.append(theirs.take("a"))
        ...     theirs.close()
        >>> found
        [True, False, True, True]
    """

    def __init__(self, store: Path) -> None:
        self.folder = store / CLAIMS
        self._held = dict[str, int]()

    def take(self, key: str) -> bool:
        """Claims a job, unless another process has."""
        try:
            import fcntl
        except ImportError:
            return True
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / key
        while True:
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except FileNotFoundError:  # another process has removed the empty folder
                self.folder.mkdir(parents=True, exist_ok=True)
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                return False
            if _is_at(handle, path):
                self._held[key] = handle
                return True
            os.close(handle)  # the process that had it removed the file in between

    def release(self, key: str) -> None:
        """Frees a job."""
        handle = self._held.pop(key, None)
        if handle is not None:
            with contextlib.suppress(OSError):
                (self.folder / key).unlink()
            os.close(handle)

    def close(self) -> None:
        """Frees all jobs, and removes the folder if no process has others."""
        for key in list(self._held):
            self.release(key)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        found = path.stat()
    except OSError:
        return False
    mine = os.fstat(handle)
    return (found.st_ino, found.st_dev) == (mine.st_ino, mine.st_dev)
