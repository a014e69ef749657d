"""The software and the processor that a result was computed with. Imports no PyTorch."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("idgnn", "torch", "torch-geometric", "torchmetrics", "networkx", "numpy")


def versions() -> dict[str, str]:
    """The versions of everything that a result depends on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a checkout that was not installed
            found[name] = "not installed"
    return found


def processor() -> str:
    """The name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("model name")]
        if names:
            return names[0]
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if printed:
            return printed
    return platform.processor() or platform.machine()
