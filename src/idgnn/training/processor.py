"""The name of the processor: what a time was measured on. Imports no PyTorch."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path


def processor() -> str:
    """The name of the processor, from where each system keeps it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
        named = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("model name")]
        if named:
            return named[0]
    if platform.system() == "Darwin":
        asked = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        if asked.stdout.strip():
            return asked.stdout.strip()
    return platform.processor() or platform.machine()
