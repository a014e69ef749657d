"""Raw files of the benchmark datasets: where they are, whether they are the right ones, and their download.

The layout is the same under IDGNN_DATA, which is never written to, and in the cache, where downloads go. PyTorch is
imported only for a download.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from idgnn.graphs.catalog import CatalogEntry, find

_SET_DATA = "Set IDGNN_DATA to the folder that holds them"
_NOT_OFFERED = {
    "released": "the authors released pickles, of which this file holds the plain arrays. "
    f"{_SET_DATA}, or use ScaleFree or SmallWorld, which are generated.",
    "counting": f"the counts were computed for this project. {_SET_DATA}.",
    "zinc": f"its training molecules were drawn for this project. {_SET_DATA}.",
    "graph6": f"it is one plain file of a larger archive. {_SET_DATA}.",
}
"""Why the files of a group cannot be downloaded, and what to do."""


@dataclass(frozen=True)
class RawFiles:
    """The raw files of a dataset: `root / each` for each of `expected`, whose values are their SHA-256."""

    root: Path
    expected: dict[str, str]

    def checksums(self) -> dict[str, str]:
        """The SHA-256 of each file."""
        return {each: hashlib.sha256((self.root / each).read_bytes()).hexdigest() for each in self.expected}

    def problems(self) -> list[str]:
        """A sentence for each file that is not the one expected."""
        return [
            f"{self.root / each} has the SHA-256 {found}, expected {self.expected[each]}."
            for each, found in self.checksums().items()
            if found != self.expected[each]
        ]


def expected(entry: CatalogEntry) -> dict[str, str]:
    """The SHA-256 of each data file of a dataset, by its path below the folder with the datasets."""
    table: dict[str, str] = json.loads(Path(__file__).with_name("checksums.json").read_text(encoding="utf-8"))
    return {path: value for path, value in table.items() if path.startswith(f"{entry.folder}/")}


def roots() -> list[Path]:
    """The folders that may hold datasets, in the order in which they are looked at."""
    given = os.environ.get("IDGNN_DATA")
    return [*([Path(given)] if given else []), download_root()]


def cache_dir() -> Path:
    """The folder named by IDGNN_CACHE, else `idgnn` in the platform's folder for caches of the user."""
    if os.environ.get("IDGNN_CACHE"):
        return Path(os.environ["IDGNN_CACHE"])
    home = Path.home()
    if sys.platform == "darwin":
        parent = home / "Library" / "Caches"
    elif sys.platform == "win32":
        parent = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        parent = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return parent / "idgnn"


def download_root() -> Path:
    """The folder that downloads go to."""
    return cache_dir() / "raw"


def locate(entry: CatalogEntry) -> RawFiles | None:
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


def is_offered(name: str) -> bool:
    """Whether the files of a dataset can be downloaded; those that were made for this project cannot."""
    return find(name).group not in _NOT_OFFERED


def file_problems(name: str) -> list[str]:
    """The problems of the raw files of a dataset, a sentence each; an empty list if there are none."""
    entry = find(name)
    if entry.folder is None:
        return []
    found = locate(entry)
    if found is None:
        if not is_offered(name):
            return [_not_offered(entry)]
        looked = " and ".join(map(str, roots()))
        return [f"the files of {entry.name} are not in {looked}. Fetch them with idgnn data fetch {entry.name}."]
    return found.problems()


def ensure(entry: CatalogEntry) -> RawFiles:
    """The raw files of a dataset, downloaded if necessary; they are not verified."""
    found = locate(entry)
    if found is not None:
        return found
    if not is_offered(entry.name):
        raise ValueError(_not_offered(entry))
    looked = " and ".join(map(str, roots()))
    try:
        _download(entry, download_root())
    except Exception as error:  # of the network, the server, the archive or the disk
        raise ValueError(
            f"the files of {entry.name} are not in {looked}, and could not be downloaded from {entry.source} "
            f"({error}). Set IDGNN_DATA to a folder that holds them, or connect to the internet and try again."
        ) from error
    return RawFiles(download_root(), expected(entry))


def _not_offered(entry: CatalogEntry) -> str:
    return (
        f"the files of {entry.name} ({', '.join(expected(entry))}) are not in {' and '.join(map(str, roots()))}, and "
        f"they cannot be downloaded: {_NOT_OFFERED[entry.group]}"
    )


def fetch(name: str) -> None:
    """Downloads the raw files of a dataset, unless they are available, and verifies them."""
    entry = find(name)
    if entry.folder is not None:
        ensure(entry)
    problems = file_problems(name)
    if problems:
        raise ValueError(f"{entry.name} was fetched, but is not what was expected. {' '.join(problems)}")


def _download(entry: CatalogEntry, root: Path) -> None:
    """Downloads into a temporary folder; files are moved to their places only when all of them are there."""
    from torch_geometric.data import download_url, extract_zip  # imports PyTorch

    names = list(expected(entry))
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, suffix=".part") as temporary:
        folder = Path(temporary)
        if entry.group in ("planetoid", "folds"):  # file by file
            for each in names:
                download_url(f"{entry.source}/{each.removeprefix(f'{entry.folder}/')}", str(folder), log=False)
        else:
            archive = download_url(entry.source, str(folder), log=False)
            extract_zip(archive, str(folder), log=False)
        for each in names:
            found = sorted(folder.rglob(Path(each).name))  # wherever the archive has it
            if not found:
                raise FileNotFoundError(f"the download holds no {Path(each).name}")
            (root / each).parent.mkdir(parents=True, exist_ok=True)
            os.replace(found[0], root / each)
