"""Graphs that took time to make, kept in a file: a safetensors file of stacked tensors, which runs no code on load.

Each attribute is one tensor, the graphs one after another along the dimension that PyG concatenates it in, and beside
it its size in each graph. Node ids stay those of their own graph. What is not a tensor is kept as JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.raw_files import cache_dir
from idgnn.writing import replacing

_FORMAT = 1  # to be raised when the layout of the files or the meaning of a graph changes
_ABSENT = -1  # the size of an attribute in a graph that has none


def cache_key(name: str, *parts: object) -> str:
    """A name for a file of the cache: equal if and only if name, parts (content and settings) and format are."""
    content = json.dumps([_FORMAT, name, *map(str, parts)])
    return f"{name}-{hashlib.sha256(content.encode()).hexdigest()}"


def cached(key: str, make: Callable[[], list[Data]]) -> list[Data]:
    """What `make` gives, from the file of an earlier call with the same key if there is one.

    A file that cannot be read is made again. Several processes may call it at once: each writes under a name of its own
    and then renames. Where the folder cannot be written, a warning says so, and the graphs are made on each call.
    """
    path = cache_dir() / "graphs" / f"{key}.safetensors"
    if path.is_file():
        # SafetensorError, KeyError, ValueError: the file is damaged; OSError: it is gone or not ours to read.
        with contextlib.suppress(OSError, SafetensorError, KeyError, ValueError):
            return _read(path)
    graphs = make()
    tensors, rest = _stack(graphs)
    try:
        _write(path, tensors, rest)
    except ValueError as error:
        warnings.warn(
            f"{key} could not be kept in {path.parent} ({error}), so it will be made again next time. Make that folder "
            "writable, or set IDGNN_CACHE to another one.",
            stacklevel=2,
        )
    return graphs


def _stack(graphs: list[Data]) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The tensors of all graphs stacked by attribute, with their sizes, and the rest of each graph."""
    contents = [graph.to_dict() for graph in graphs]
    tensors: dict[str, Tensor] = {}
    for key in sorted({key for each in contents for key, value in each.items() if isinstance(value, Tensor)}):
        parts = [each.get(key) for each in contents]
        present = [part for part in parts if isinstance(part, Tensor)]
        dim = _dim_of(key)
        for part in present:
            if part.dim() == 0 or part.dtype != present[0].dtype or _others(part, dim) != _others(present[0], dim):
                raise ValueError(
                    f"the attribute {key} is {_about(present[0])} in one graph and {_about(part)} in another, expected "
                    "tensors that can be stacked. Give it the same type and width in all graphs."
                )
        tensors[key] = torch.cat(present, dim).contiguous()
        tensors[f"sizes of {key}"] = torch.tensor(
            [part.size(dim) if isinstance(part, Tensor) else _ABSENT for part in parts], dtype=torch.long
        )
    return tensors, [{k: v for k, v in each.items() if not isinstance(v, Tensor)} for each in contents]


def _write(path: Path, tensors: dict[str, Tensor], rest: list[dict[str, Any]]) -> None:
    metadata = {"rest": json.dumps(rest if any(rest) else len(rest)), "crc": str(_crc(tensors))}
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata)


def _read(path: Path) -> list[Data]:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118, it is no mapping
    if metadata["crc"] != str(_crc(tensors)):
        raise ValueError(f"{path} is damaged.")
    rest = json.loads(metadata["rest"])
    contents: list[dict[str, Any]] = [{} for _ in range(rest)] if isinstance(rest, int) else rest
    for key in [key for key in tensors if f"sizes of {key}" in tensors]:
        sizes = tensors[f"sizes of {key}"].tolist()
        dim = _dim_of(key)
        parts = iter(tensors[key].split([size for size in sizes if size != _ABSENT], dim))
        for content, size in zip(contents, sizes, strict=True):
            if size != _ABSENT:
                # Slices of the last dimension are scattered in memory, and layers want edge_index in one piece.
                content[key] = next(parts).contiguous()
    return [Data.from_dict(content) for content in contents]


def _dim_of(key: str) -> int:
    """The dimension in which PyG concatenates the attribute."""
    return Data().__cat_dim__(key, None)


def _others(tensor: Tensor, dim: int) -> list[int]:
    sizes = list(tensor.shape)
    del sizes[dim]
    return sizes


def _about(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


def _crc(tensors: dict[str, Tensor]) -> int:
    """A checksum of all bytes: safetensors notices a file of the wrong length, but not a wrong byte."""
    crc = 0
    for key in sorted(tensors):
        value = tensors[key]
        crc = zlib.crc32(f"{key} {_about(value)}".encode(), crc)
        if value.numel():
            crc = zlib.crc32(value.view(-1).view(torch.uint8).numpy().data, crc)
    return crc
