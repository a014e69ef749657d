"""What all wrapped modules have in common: a copy of the given module, its arguments, and files."""

from __future__ import annotations

import copy
import os
from inspect import signature
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from idgnn.models.wrapping.hooks import remove_hooks
from idgnn.writing import replacing


def takes(module: nn.Module, name: str) -> bool:
    """Whether a PyG layer or model takes an argument of this name, `edge_attr` or `edge_weight` for example."""
    if not getattr(module, f"supports_{name}", True):  # as PyG's ready models say
        return False
    if name == "edge_attr" and getattr(module, "edge_dim", "") is None:  # it could, but was made without
        return False
    return name in signature(module.forward).parameters


_READING = "reading"  # in the metadata of a file


class Wrapped(nn.Module):
    """What identity-aware layers and models have in common."""

    module: Any

    @property
    def reading(self) -> str:
        """How queries are read, as it is written in a call, if the weights do not tell; empty with one color."""
        return ""

    def check_reading(self, saved: str, where: object) -> None:
        """Refuses weights that were trained for queries that are read in another way."""
        if saved != self.reading:
            raise ValueError(
                f"the weights in {where} were saved with {saved or 'one color'}, and the model has "
                f"{self.reading or 'one color'}. Wrap it with the same options."
            )

    def takes(self, name: str) -> bool:
        """Whether the wrapped module takes an argument of this name, `edge_attr` or `edge_weight` for example."""
        return takes(self.module, name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the weights into a safetensors file, to be loaded into a module that is made in code."""
        state: dict[str, Tensor] = {}
        for name, tensor in self.state_dict().items():
            if is_lazy(tensor):
                raise ValueError(f"{name} has no width before the first call. Call the model once, then save it.")
            state[name] = tensor.detach().clone(memory_format=torch.contiguous_format)  # tied weights are written twice
        with replacing(Path(path)) as temporary:
            save_file(state, temporary, metadata={"format": "pt", _READING: self.reading})

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Reads the weights that :meth:`save` wrote into this model, which it returns in evaluation mode.

        Example:
            >>> from tempfile import TemporaryDirectory
            >>> from torch_geometric.nn import GCN
            >>> from idgnn import identity_aware
            >>> with TemporaryDirectory() as folder:
            ...     identity_aware(GCN(2, 4, 2)).save(f"{folder}/model.safetensors")
            ...     model = identity_aware(GCN(2, 4, 2)).load(f"{folder}/model.safetensors")
        """
        if not Path(path).is_file():
            raise ValueError(f"there is no file {path}, expected one that {type(self).__name__}.save wrote.")
        try:
            with safe_open(path, framework="pt") as file:
                saved = (file.metadata() or {}).get(_READING, self.reading)
            self.check_reading(saved, path)  # before any weight is taken
            self.load_state_dict(load_file(path))
        except (SafetensorError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold the weights of this model: {error}") from None
        return self.eval()


def copied(module: Any) -> Any:
    """A copy of a module, without the hooks of an earlier wrapper."""
    try:
        copied = copy.deepcopy(module)
    except RuntimeError as error:
        raise ValueError(
            f"{type(module).__name__} cannot be copied: it keeps a tensor of its last training step. Load its weights "
            "into a fresh one (fresh.load_state_dict(model.state_dict())), and make that identity-aware."
        ) from error
    remove_hooks(copied)
    return copied


def hold(tree: nn.Module, name: str, color: nn.Module) -> None:
    """Puts a color map, or several, into a tree of modules that mirrors the names of the model."""
    *path, last = name.split(".")
    for part in path:
        if part not in tree._modules:
            tree.add_module(part, nn.Module())
        tree = tree.get_submodule(part)
    tree.add_module(last, color)
