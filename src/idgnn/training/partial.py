"""Embeddings that are under way: kept in a file after each chunk, so that a run that was killed goes on."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import save
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import checksum
from idgnn.identity.checks import check_graph
from idgnn.identity.queries import as_queries
from idgnn.models.chunk_shares import Share
from idgnn.models.embedding import EmbeddingBar, distinct_roots, embed_by_chunks, embedding_shape
from idgnn.models.embedding_memory import as_bytes
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.saving import separate_tensors
from idgnn.training.processes import SINGLE_PROCESS, Processes
from idgnn.writing import replacing, write_text

if TYPE_CHECKING:
    from idgnn.models.inputs import AnyEncoder

_PARTS = 16  # chunks at least, whatever the number of processes: so many can share them
_SENT = 2**16  # rows at a time


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
        self.begin: int | None = None  # where a share of the work begins
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
        write_text(self.note, json.dumps({**self.made_of, "begin": self.begin, "done": done}))
        self.done = done

    def _found(self) -> int:
        """How far an earlier run of the same work came."""
        try:
            found = json.loads(self.note.read_text(encoding="utf-8"))
            done, begin = found.pop("done"), found.pop("begin")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return 0
        there = self.path.is_file() and self.path.stat().st_size == self._size
        if not there or found != self.made_of or not isinstance(done, int) or not isinstance(begin, int | None):
            return 0
        self.begin = begin
        return done


def discard(path: Path) -> None:
    """Deletes the files of a :class:`Partial`: the count first, without which the numbers mean nothing."""
    _note(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def embed_partial(
    encoder: AnyEncoder,
    data: Data,
    roots: Tensor | None,
    memory: int | str | None,
    progress: bool,
    path: Path,
    processes: Processes = SINGLE_PROCESS,
) -> Tensor:
    """:meth:`idgnn.IDGNN.embed`, with what is done kept in a file at `path`. The file stays: see :func:`discard`.

    Each of several processes computes a share and keeps it in a file of its own, on its own machine; the first one
    returns what all of them have, bit for bit as if it had computed it alone, and the others no rows.
    """
    shape = embedding_shape(encoder, data, roots)
    if shape[0] == 0:
        return encoder.embed(data, roots)
    share = Share(processes.rank, processes.size, _PARTS)
    fingerprint = _fingerprint(encoder, data, roots)
    partial = Partial(partial_path(path, processes), f"{fingerprint} {share.rank}/{share.size}", shape)
    queries = as_queries(roots, check_graph(data), torch.device("cpu"))
    number = distinct_roots(encoder, roots, queries, max(data.num_nodes or 0, 1))[1]
    with EmbeddingBar(-(-shape[0] // processes.size), progress and processes.first) as bar:
        bar.advance(partial.done - (partial.begin or 0))

        def finished(positions: Tensor, values: Tensor, done: int) -> None:
            if partial.begin is None:
                partial.begin = int(number[positions[0]])
            partial.add(positions, values.float(), done)
            bar.advance(positions.numel())

        memory = _shared_memory(encoder, memory, processes)
        embed_by_chunks(encoder, data, roots, memory, finished, partial.done, share)
    if processes.size == 1:
        return torch.from_numpy(np.array(partial.values))
    begin = partial.done if partial.begin is None else partial.begin
    own = ((number >= begin) & (number < partial.done)).nonzero().flatten()
    return _gathered(partial, own, processes)


def _gathered(partial: Partial, own: Tensor, processes: Processes) -> Tensor:
    """The rows of all processes, in the first one; each has those of the positions `own` `[rows]`."""
    # On the CPU, whatever the device: rows go from file to file. The others may take much longer than this process.
    group: Any = dist.new_group(backend="gloo", timeout=timedelta(days=30))
    width = partial.made_of["shape"][1]
    if not processes.first:
        dist.send(torch.tensor([own.numel()]), 0, group)
        for some in own.split(_SENT):
            dist.send(some, 0, group)
            dist.send(torch.from_numpy(partial.values[some.numpy()]), 0, group)
        return torch.empty(0, width)
    found = torch.empty(partial.made_of["shape"])
    if own.numel():
        found[own] = torch.from_numpy(partial.values[own.numpy()])
    for rank in range(1, processes.size):
        left = torch.zeros(1, dtype=torch.long)
        dist.recv(left, rank, group)
        for size in torch.arange(int(left)).split(_SENT):
            positions, values = torch.empty_like(size), torch.empty(size.numel(), width)
            dist.recv(positions, rank, group)
            dist.recv(values, rank, group)
            found[positions] = values
    return found


def _shared_memory(encoder: AnyEncoder, memory: int | str | None, processes: Processes) -> int | str | None:
    """Of the memory of a CPU, the share of this process, unless the user says what each may take."""
    device = next(encoder.parameters()).device
    if memory is not None or processes.size == 1 or device.type != "cpu":
        return memory
    return as_bytes(None, device) // int(os.environ.get("LOCAL_WORLD_SIZE", processes.size))


def partial_path(path: Path, processes: Processes) -> Path:
    """The file of a process."""
    return path if processes.size == 1 else path.with_name(f"{path.name}.{processes.rank}-of-{processes.size}")


def _fingerprint(encoder: AnyEncoder, data: Data, roots: Tensor | None) -> str:
    """Equal only for equal weights, settings, graphs and roots."""
    own = isinstance(encoder, IdentityAwareModel)
    made_of = [repr(encoder), encoder.reading] if own else encoder.settings
    digest = hashlib.sha256(json.dumps(made_of, default=repr).encode())
    digest.update(save(separate_tensors(encoder.state_dict())))
    hashed = Data(**{name: value for name, value in data.to_dict().items() if isinstance(value, Tensor)})
    hashed.num_nodes, hashed.roots = data.num_nodes, roots
    digest.update(checksum([hashed]).encode())
    return digest.hexdigest()


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
