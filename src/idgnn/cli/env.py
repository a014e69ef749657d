"""`idgnn env`."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from idgnn.training.environment import processor

REQUIRED = (
    "torch",
    "torch-geometric",
    "networkx",
    "numpy",
    "safetensors",
    "torchmetrics",
    "tyro",
    "rich",
    "matplotlib",
    "psutil",
)
OPTIONAL = ("pyarrow", "tensorboard", "wandb", "mlflow", "scipy")


@dataclass(frozen=True)
class Env:
    """Print the versions of everything, to paste into a bug report."""

    def __call__(self) -> None:
        """A line for each thing, as plain text."""
        rows = [*_versions(), *_devices(), *_machine(), *_folders()]
        width = max(len(name) for name, _ in rows) + 1
        for name, value in rows:
            print(f"{name + ':':{width}} {value}")


def _versions() -> Iterator[tuple[str, str]]:
    yield "idgnn", _version("idgnn")
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    for name in REQUIRED:
        yield name, _version(name)
    for name in OPTIONAL:
        yield f"{name} (optional)", _version(name)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _devices() -> Iterator[tuple[str, str]]:
    import torch

    if torch.cuda.is_available():
        found = torch.cuda.device_count()
        names = [torch.cuda.get_device_name(device) for device in range(found)]
        yield "CUDA", f"{torch.version.cuda}, {found} device{'s' * (found != 1)}: {', '.join(names)}"
    else:
        yield (
            "CUDA",
            f"no device (PyTorch was built {f'for {torch.version.cuda}' if torch.version.cuda else 'without it'})",
        )
    yield "cuDNN", str(torch.backends.cudnn.version() or "none")
    yield "threads of PyTorch", f"{torch.get_num_threads()} (OMP_NUM_THREADS: {_variable('OMP_NUM_THREADS')})"


def _machine() -> Iterator[tuple[str, str]]:
    import psutil

    memory = psutil.virtual_memory()
    yield "system", f"{platform.platform()} ({platform.machine()})"
    yield "CPU", processor()
    yield (
        "cores",
        f"{psutil.cpu_count(logical=False) or 'unknown'} ({psutil.cpu_count() or 'unknown'} with hyperthreads)",
    )
    yield "memory", f"{memory.total / 2**30:.1f} GiB, {memory.available / 2**30:.1f} GiB free"


def _folders() -> Iterator[tuple[str, str]]:
    for name in ("IDGNN_DATA", "IDGNN_CACHE"):
        yield name, _variable(name)


def _variable(name: str) -> str:
    return os.environ.get(name) or "not set"
