"""Where and with what a figure was measured."""

from __future__ import annotations

import datetime
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from idgnn.training.environment import processor


def describe(device: str = "cpu") -> dict[str, Any]:
    """Date, machine and versions."""
    machine: dict[str, Any] = {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "system": platform.system(),
    }
    if device.startswith("cuda"):
        machine["gpu"] = torch.cuda.get_device_name(device)
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine,
        "versions": {name: _version(name) for name in ("idgnn", "torch", "torch-geometric")}
        | {"python": platform.python_version()},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "checkout"
