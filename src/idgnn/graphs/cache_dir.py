"""The folder for what is downloaded or computed once and used again. Needs no PyTorch."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """The folder named by IDGNN_CACHE, else `idgnn` in the platform's folder for caches of the user."""
    if os.environ.get("IDGNN_CACHE"):
        return Path(os.environ["IDGNN_CACHE"])
    home = Path.home()
    if sys.platform == "darwin":
        parent = home / "Library" / "Caches"
    elif sys.platform == "win32":
        parent = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        parent = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return parent / "idgnn"
