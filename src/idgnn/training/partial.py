"""Embeddings that are under way: kept in a file after each chunk, so that a run that was killed goes on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import checksum
from idgnn.models.embedding import EmbeddingBar, embed_by_chunks, embedding_shape
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.saving import separate_tensors
from idgnn.writing import replacing, write_text

if TYPE_CHECKING:
    from idgnn.models.inputs import AnyEncoder


class Partial:
    """The first rows of a result: the numbers in one file, and in another how many there are and what they are of.

    Numbers are written before they are counted, and the count takes the place of the old one as a whole. So whenever
    the process ends, what is counted is there.

    Args:
        path: The file of numbers; the other has `.json` behind its name.
        fingerprint: What the result is made of. A file of anything else is not used.
        shape: Of the whole result.
    """

    def __init__(self, path: Path, fingerprint: str, shape: torch.Size) -> None:
        self.path, self.note = path, _note(path)
        self.made_of: dict[str, Any] = {"fingerprint": fingerprint, "shape": list(shape)}
        self._size = np.dtype(np.float32).itemsize * shape.numel()
        self.done = self._found()
        self._values: np.memmap | None = None

    @property
    def values(self) -> np.memmap:
        """The whole result, as far as it is there. The file is made when there is something to keep."""
        if self._values is None:
            if not self.done:
                discard(self.path)
                with replacing(self.path) as temporary, temporary.open("wb") as file:
                    file.truncate(self._size)
            self._values = np.memmap(self.path, np.float32, "r+", shape=tuple(self.made_of["shape"]))
        return self._values

    def add(self, positions: Tensor, values: Tensor, done: int) -> None:
        """Keeps some more rows; `done` says how far the work is."""
        self.values[positions.numpy()] = values.numpy()
        self.values.flush()
        write_text(self.note, json.dumps({**self.made_of, "done": done}))
        self.done = done

    def _found(self) -> int:
        """How far an earlier run of the same work came."""
        try:
            found = json.loads(self.note.read_text(encoding="utf-8"))
            done = found.pop("done")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return 0
        there = self.path.is_file() and self.path.stat().st_size == self._size
        return done if there and found == self.made_of and isinstance(done, int) else 0


def discard(path: Path) -> None:
    """Deletes the files of a :class:`Partial`: the count first, without which the numbers mean nothing."""
    _note(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def embed_partial(
    encoder: AnyEncoder, data: Data, roots: Tensor | None, memory: int | str | None, progress: bool, path: Path
) -> Tensor:
    """:meth:`idgnn.IDGNN.embed`, with what is done kept in a file at `path`. The file stays: see :func:`discard`."""
    shape = embedding_shape(encoder, data, roots)
    if shape[0] == 0:
        return encoder.embed(data, roots)
    partial = Partial(path, _fingerprint(encoder, data, roots), shape)
    with EmbeddingBar(shape[0], progress) as bar:
        bar.advance(partial.done)

        def finished(positions: Tensor, values: Tensor, done: int) -> None:
            partial.add(positions, values.float(), done)
            bar.advance(positions.numel())

        embed_by_chunks(encoder, data, roots, memory, finished, partial.done)
    return torch.from_numpy(np.array(partial.values))


def _fingerprint(encoder: AnyEncoder, data: Data, roots: Tensor | None) -> str:
    """Equal only for equal weights, settings, graphs and roots."""
    made_of = repr(encoder) if isinstance(encoder, IdentityAwareModel) else encoder.settings
    digest = hashlib.sha256(json.dumps(made_of, default=repr).encode())
    digest.update(save(separate_tensors(encoder.state_dict())))
    asked = Data(**{name: value for name, value in data.to_dict().items() if isinstance(value, Tensor)})
    asked.num_nodes, asked.asked_roots = data.num_nodes, roots
    digest.update(checksum([asked]).encode())
    return digest.hexdigest()


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
