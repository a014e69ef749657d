"""Datasets by name."""

from __future__ import annotations

from idgnn.graphs.benchmarks import benchmark
from idgnn.graphs.catalog import NAMES, find
from idgnn.graphs.dataset import Dataset
from idgnn.graphs.download import ensure
from idgnn.graphs.raw_files import is_available, verify
from idgnn.graphs.synthetic import scale_free, small_world

__all__ = ["NAMES", "fetch", "is_available", "load", "verify"]

_GENERATORS = {"ScaleFree": scale_free, "SmallWorld": small_world}


def load(name: str, *, seed: int = 0, verify: bool = True) -> Dataset:
    """The dataset of that name, in upper or lower case; :data:`NAMES` lists them.

    Files are looked for in the folder named by IDGNN_DATA, then in the cache, and else downloaded. Their SHA-256 is
    verified; what they hold is kept in the cache, so that the next call is fast.

    Args:
        name: one of :data:`NAMES`.
        seed: for the datasets that are generated; the others do not depend on it.
        verify: whether files with another SHA-256 than expected are refused. Pickles (Cora, CiteSeer) always are.
    """
    entry = find(name)
    if entry.name in _GENERATORS:
        return Dataset(entry.name, _GENERATORS[entry.name](seed=seed))
    return benchmark(entry, verify)


def fetch(name: str) -> None:
    """Downloads the raw files of a dataset, unless they are there already, and verifies them."""
    entry = find(name)
    if entry.folder is not None:
        ensure(entry)
    problems = verify(name)
    if problems:
        raise ValueError(f"{entry.name} was fetched, but is not what was expected. {' '.join(problems)}")
