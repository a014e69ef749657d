"""Downloads of the benchmarks, each into the layout of :mod:`idgnn.graphs.raw_files`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from torch_geometric.data import download_url, extract_zip

from idgnn.graphs.catalog import Entry
from idgnn.graphs.raw_files import RawFiles, download_root, expected, locate, roots


def ensure(entry: Entry) -> RawFiles:
    """The raw files of a dataset, downloaded if they are nowhere yet. They are not verified yet."""
    found = locate(entry)
    if found is not None:
        return found
    looked = " and ".join(map(str, roots()))
    if entry.group == "released":
        raise ValueError(
            f"the files of {entry.name} ({', '.join(expected(entry))}) are not in {looked}, and they cannot be "
            "downloaded: the authors released pickles, of which this file holds the plain arrays. Set IDGNN_DATA to "
            "the folder that holds them, or use ScaleFree or SmallWorld, which are generated."
        )
    try:
        _download(entry, download_root())
    except Exception as error:  # of the network, the server, the archive or the disk: all end the same way
        raise ValueError(
            f"the files of {entry.name} are not in {looked}, and could not be downloaded from {entry.source} "
            f"({error}). Set IDGNN_DATA to a folder that holds them, or connect to the internet and try again."
        ) from error
    return RawFiles(download_root(), expected(entry))


def _download(entry: Entry, root: Path) -> None:
    """Fetches into a folder of its own, which takes its place only when it is complete."""
    names = list(expected(entry))
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, suffix=".part") as temporary:
        folder = Path(temporary)
        if entry.group == "planetoid":
            for each in names:
                download_url(f"{entry.source}/{Path(each).name}", str(folder), log=False)
        else:
            archive = download_url(entry.source, str(folder), log=False)
            extract_zip(archive, str(folder), log=False)
        for each in names:
            _place(folder, each, root)


def _place(folder: Path, name: str, root: Path) -> None:
    """Moves a downloaded file, wherever the archive had it, to where it belongs."""
    found = sorted(folder.rglob(Path(name).name))
    if not found:
        raise FileNotFoundError(f"the download holds no {Path(name).name}")
    target = root / name
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(found[0], target)
