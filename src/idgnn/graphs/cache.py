"""A cache for graphs that took time to make: safetensors files of stacked tensors, which run no code when loaded.

Each attribute is one tensor, the graphs concatenated along the dimension that PyG concatenates it in, with its size in
each graph as a second tensor. Node ids are those of each graph alone. Values that are not tensors are stored as JSON.
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

_FORMAT = 1  # to be increased when the layout of the files or the meaning of a graph changes
_ABSENT = -1  # the size of an attribute in a graph that has none


def cache_key(name: str, *parts: object) -> str:
    """The name of a cache file: equal if and only if name, parts (content and settings) and format are."""
    content = json.dumps([_FORMAT, name, *map(str, parts)])
    return f"{name}-{hashlib.sha256(content.encode()).hexdigest()}"


def cached(key: str, make: Callable[[], list[Data]]) -> list[Data]:
    """The result of `make`, read from the file of an earlier call with the same key if there is one.

    A file that cannot be read is replaced. Several processes may call it at once: each writes a temporary file and then
    renames it. If the folder cannot be written, a warning says so, and the graphs are made on each call.
    """
    path = cache_dir() / "graphs" / f"{key}.safetensors"
    if path.is_file():
        # SafetensorError, KeyError, ValueError: the file is damaged; OSError: it was deleted or is not readable.
        with contextlib.suppress(OSError, SafetensorError, KeyError, ValueError):
            return _read(path)
    graphs = make()
    tensors, rest = _stack(graphs)
    metadata = {"rest": json.dumps(rest if any(rest) else len(rest)), "crc": str(_crc(tensors))}
    try:
        with replacing(path) as temporary:
            save_file(tensors, temporary, metadata)
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
            if part.dim() == 0 or part.dtype != present[0].dtype or _width(part, dim) != _width(present[0], dim):
                raise ValueError(
                    f"the attribute {key} is {_about(present[0])} in one graph and {_about(part)} in another, expected "
                    "tensors that can be stacked. Give it the same type and width in all graphs."
                )
        tensors[key] = torch.cat(present, dim).contiguous()
        tensors[f"sizes of {key}"] = torch.tensor(
            [part.size(dim) if isinstance(part, Tensor) else _ABSENT for part in parts], dtype=torch.long
        )
    return tensors, [{k: v for k, v in each.items() if not isinstance(v, Tensor)} for each in contents]


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
                # Slices along the last dimension are not contiguous, and layers expect a contiguous edge_index.
                content[key] = next(parts).contiguous()
    return [Data.from_dict(content) for content in contents]


def _dim_of(key: str) -> int:
    """The dimension in which PyG concatenates the attribute."""
    return Data().__cat_dim__(key, None)


def _width(tensor: Tensor, dim: int) -> list[int]:
    """The sizes of the other dimensions."""
    sizes = list(tensor.shape)
    del sizes[dim]
    return sizes


def _about(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


def _crc(tensors: dict[str, Tensor]) -> int:
    """A checksum of all bytes: safetensors detects a file of the wrong length, but not a wrong byte."""
    crc = 0
    for key in sorted(tensors):
        value = tensors[key]
        crc = zlib.crc32(f"{key} {_about(value)}".encode(), crc)
        if value.numel():
            crc = zlib.crc32(value.view(-1).view(torch.uint8).numpy().data, crc)
    return crc
