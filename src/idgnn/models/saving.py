"""Models on disk: the weights as safetensors, the settings as JSON. No pickle, so loading runs no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from idgnn.writing import replacing, write_text

_WEIGHTS, _SETTINGS = "model.safetensors", "model.json"
_CHECKSUM = "weights_sha256"


class Saved(nn.Module):
    """A module that is made from plain settings and can be saved with them."""

    settings: dict[str, Any]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the model into `folder`, which is made if it is not there."""
        for name, value in _flat(self.settings):
            if not isinstance(value, str | int | float | bool | np.generic | None):
                raise ValueError(
                    f"the model was made with {name}={value!r}, which is code and cannot be written to a file. Save "
                    "model.state_dict() with safetensors.torch.save_file instead, and make the model again in code."
                )
        folder = Path(folder)
        state = separate_tensors(self.state_dict())
        # Both files are complete before either takes its name, so that a failure leaves what was there.
        with replacing(folder / _WEIGHTS) as weights:
            save_file(state, weights)
            # A file of weights with other bits in it can be read, and would answer wrongly without a word.
            written = {"class": type(self).__name__, "settings": self.settings, _CHECKSUM: _checksum(weights)}
            write_text(folder / _SETTINGS, json.dumps(written, indent=2, default=np.generic.item) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Reads a model that :meth:`save` wrote, in evaluation mode; to train it on, call its `train()`."""
        return cls._made(folder, cls._read_settings(folder))._load_weights(folder)

    @classmethod
    def _read_settings(cls, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """The settings; refuses weights that are not those that were saved with them."""
        folder = Path(folder)
        for name in (_SETTINGS, _WEIGHTS):
            if not (folder / name).is_file():
                raise ValueError(f"there is no {name} in {folder}, expected a folder that {cls.__name__}.save wrote.")
        try:
            written = json.loads((folder / _SETTINGS).read_text())
            name, settings, checksum = written["class"], written["settings"], written[_CHECKSUM]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder / _SETTINGS} is not what {cls.__name__}.save wrote: {error!r}.") from None
        if name != cls.__name__:
            raise ValueError(f"{folder} holds a {name}, expected a {cls.__name__}. Load it with {name}.load.")
        if _checksum(folder / _WEIGHTS) != checksum:
            raise ValueError(
                f"{folder / _WEIGHTS} does not hold the weights that were saved: it was damaged or replaced. Copy the "
                "folder from its source again, or train again."
            )
        return settings

    @classmethod
    def _made(cls, folder: str | os.PathLike[str], settings: dict[str, Any]) -> Self:
        try:
            return cls(**settings)
        except TypeError as error:
            name = cls.__name__
            raise ValueError(f"{Path(folder) / _SETTINGS} does not fit this version of {name}: {error}.") from None

    def _load_weights(self, folder: str | os.PathLike[str], assign: bool = True) -> Self:
        """Takes the weights in the precision of the file, unless they are copied into those that are there."""
        path = Path(folder) / _WEIGHTS
        try:
            self.load_state_dict(load_file(path), assign=assign)
        except (SafetensorError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold the weights of this model: {error}") from None
        return self.eval()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def separate_tensors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors that share no memory, as safetensors files hold them: tied weights are written twice."""
    return {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()}


def _flat(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, list | tuple):
            value = {f"{name}[{i}]": item for i, item in enumerate(value)}
        yield from _flat(value) if isinstance(value, dict) else [(name, value)]
