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
OPTIONAL = ("tensorboard", "wandb", "mlflow")


@dataclass(frozen=True)
class Env:
    """Print the versions of everything, to paste into a bug report."""

    def __call__(self) -> None:
        """Prints lines of name and value, as plain text."""
        rows = [*_software(), *_machine()]
        width = max(len(name) for name, _ in rows) + 1
        for name, value in rows:
            print(f"{name + ':':{width}} {value}")


def _software() -> Iterator[tuple[str, str]]:
    def version(name: str) -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return "not installed"

    yield "idgnn", version("idgnn")
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    for name in REQUIRED:
        yield name, version(name)
    for name in OPTIONAL:
        yield f"{name} (optional)", version(name)


def _machine() -> Iterator[tuple[str, str]]:
    import psutil
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(device) for device in range(torch.cuda.device_count())]
        yield "CUDA", f"{torch.version.cuda}, {len(names)} device{'s' * (len(names) != 1)}: {', '.join(names)}"
    else:
        built = f"for {torch.version.cuda}" if torch.version.cuda else "without it"
        yield "CUDA", f"no device (PyTorch was built {built})"
    yield "cuDNN", str(torch.backends.cudnn.version() or "none")
    yield "threads of PyTorch", f"{torch.get_num_threads()} (OMP_NUM_THREADS: {_variable('OMP_NUM_THREADS')})"
    yield "system", f"{platform.platform()} ({platform.machine()})"
    yield "CPU", processor()
    physical, logical = psutil.cpu_count(logical=False) or "unknown", psutil.cpu_count() or "unknown"
    yield "cores", f"{physical} ({logical} with hyperthreads)"
    memory = psutil.virtual_memory()
    yield "memory", f"{memory.total / 2**30:.1f} GiB, {memory.available / 2**30:.1f} GiB free"
    for name in ("IDGNN_DATA", "IDGNN_CACHE"):
        yield name, _variable(name)


def _variable(name: str) -> str:
    return os.environ.get(name) or "not set"
