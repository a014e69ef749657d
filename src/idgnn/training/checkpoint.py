"""The state of a run between two epochs as one file, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from idgnn.models.saving import separate_tensors
from idgnn.training.cuda_graphs import make_adam_state
from idgnn.training.processes import command
from idgnn.training.trainer import Trainer
from idgnn.writing import replacing

_ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")  # for each weight


def save_checkpoint(trainer: Trainer, path: Path) -> None:
    """Writes everything that training changes: weights, the state of Adam, epoch, batch size, best epoch."""
    progress = {
        "epoch": trainer.epoch,
        "batch_size": trainer.batch_size,
        "best_epoch": trainer.best_epoch,
        "best_score": trainer.best_score,
        "processes": trainer.processes.size,
    }
    save_state(path, trainer.model, trainer.optimizer, {"best": trainer.best_weights}, progress)


def load_checkpoint(trainer: Trainer, path: Path) -> None:
    """Restores the state that :func:`save_checkpoint` wrote, in a trainer with the same settings."""
    tensors, progress = load_state(path, trainer.model, trainer.optimizer, trainer.device)
    if trainer.recorder is not None:
        make_adam_state(trainer.optimizer)  # of weights that had no gradient so far
    trainer.best_weights = under("best/", tensors)
    trainer.epoch, trainer.batch_size = progress["epoch"], progress["batch_size"]
    trainer.best_epoch, trainer.best_score = progress["best_epoch"], progress["best_score"]
    before, now = progress["processes"], trainer.processes.size
    if before != now and trainer.processes.first:
        warnings.warn(
            f"the run was trained by {before} processes and continues with {now}. BatchNorm takes its statistics over "
            f"the share of each, so the result will differ. To continue as before: {command(before)} train --resume "
            f"{path.parent}",
            stacklevel=2,
        )


def _checksum(tensors: Mapping[str, Tensor], progress: str) -> str:
    """Of all that training goes on with: other bits in the file could be read, and would change the result."""
    digest = hashlib.sha256(progress.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)};".encode())
        digest.update(tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def save_state(
    path: Path,
    model: nn.Module,
    optimizer: Optimizer,
    tensors: Mapping[str, Mapping[str, Tensor]],
    progress: Mapping[str, Any],
) -> None:
    """Writes weights, the state of Adam, groups of other tensors by name, and values that JSON can hold."""
    written = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    for number, slots in optimizer.state_dict()["state"].items():
        written |= {f"adam/{number}/{name}": slots[name] for name in _ADAM_STATE}
    for group, values in tensors.items():
        written |= {f"{group}/{name}": tensor for name, tensor in values.items()}
    separate, said = separate_tensors(written), json.dumps(progress)
    with replacing(path) as temporary:
        save_file(separate, temporary, {"progress": said, "checksum": _checksum(separate, said)})


def load_state(
    path: Path, model: nn.Module, optimizer: Optimizer, device: torch.device | str
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Restores weights and the state of Adam that :func:`save_state` wrote; returns all tensors, and the values."""
    try:
        with safe_open(path, "pt", device=str(device)) as file:
            metadata = file.metadata()
            progress = json.loads(metadata["progress"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
        if _checksum(tensors, metadata["progress"]) != metadata["checksum"]:
            raise ValueError("it was damaged")
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is not a checkpoint of a run ({error}). Start the run again.") from None
    try:
        model.load_state_dict(under("model/", tensors))
    except RuntimeError:
        raise ValueError(f"{path} is a checkpoint of another network. Start the run again.") from None
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in under("adam/", tensors).items():
        number, slot = name.split("/")
        slots.setdefault(int(number), {})[slot] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": slots, "param_groups": groups})
    return tensors, progress


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
