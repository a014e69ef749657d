"""Where the raw files of the benchmarks lie, and whether they are the right ones. Needs no PyTorch.

The layout is the same under IDGNN_DATA, which is only ever read, and in the cache, where downloads go.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from idgnn.graphs.cache_dir import cache_dir
from idgnn.graphs.catalog import Entry, find


@dataclass(frozen=True)
class RawFiles:
    """The raw files of a dataset: `root / each` for each of `expected`, whose values are their SHA-256."""

    root: Path
    expected: dict[str, str]

    def checksums(self) -> dict[str, str]:
        """The SHA-256 that each file really has."""
        return {each: hashlib.sha256((self.root / each).read_bytes()).hexdigest() for each in self.expected}

    def problems(self) -> list[str]:
        """A sentence for each file that is not the one expected."""
        return [
            f"{self.root / each} has the SHA-256 {found}, expected {self.expected[each]}."
            for each, found in self.checksums().items()
            if found != self.expected[each]
        ]


def expected(entry: Entry) -> dict[str, str]:
    """The SHA-256 of each data file of a dataset, by its path below the folder with the datasets."""
    table: dict[str, str] = json.loads(Path(__file__).with_name("checksums.json").read_text(encoding="utf-8"))
    return {path: value for path, value in table.items() if path.startswith(f"{entry.folder}/")}


def roots() -> list[Path]:
    """The folders that may hold datasets, in the order in which they are looked at."""
    given = os.environ.get("IDGNN_DATA")
    return [*([Path(given)] if given else []), download_root()]


def download_root() -> Path:
    """The folder that downloads go to."""
    return cache_dir() / "raw"


def locate(entry: Entry) -> RawFiles | None:
    """The first folder with all files of the dataset, or `None`."""
    names = expected(entry)
    for root in roots():
        if all((root / each).is_file() for each in names):
            return RawFiles(root, names)
    return None


def is_available(name: str) -> bool:
    """Whether :func:`idgnn.graphs.load.load` needs no download for it."""
    entry = find(name)
    return entry.folder is None or locate(entry) is not None


def verify(name: str) -> list[str]:
    """What is wrong with the raw files of a dataset, a sentence each; nothing, if there is nothing to say."""
    entry = find(name)
    if entry.folder is None:
        return []
    found = locate(entry)
    if found is None:
        looked = " and ".join(map(str, roots()))
        return [f"the files of {entry.name} are not in {looked}. Fetch them with idgnn data fetch {entry.name}."]
    return found.problems()
