"""Where results are kept: a record a line in one file, to which several processes may add. Imports no PyTorch."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from idgnn.experiments.record import Record
from idgnn.writing import replacing, write_text

RECORDS = "records.jsonl"
DEFAULT = Path("results")


@dataclass(frozen=True)
class Contents:
    """What a store holds: the record that counts for each key, and the lines that could not be read."""

    records: dict[str, Record]
    broken: tuple[str, ...] = ()
    """A sentence for each line that is not a record: a process or the power went while it was written."""

    @property
    def finished(self) -> dict[str, Record]:
        """Those that have a result."""
        return {key: record for key, record in self.records.items() if record.error is None}

    @property
    def failed(self) -> dict[str, Record]:
        """Those that ended with an error, and were not run again with success."""
        return {key: record for key, record in self.records.items() if record.error is not None}


class Store:
    """A folder with the file `records.jsonl`, which only ever grows; it is made by the first record.

    Records may also be packed in `records.jsonl.gz` beside it, as they are in the repository. Of several records of a
    job the first with a result counts, and if there is none the last error.
    """

    def __init__(self, folder: Path | str = DEFAULT) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file, expected the folder of a store. Name the folder that it is in.")

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / RECORDS

    def append(self, record: Record) -> None:
        """Adds a record, which is on the disk when this returns, as a whole or not at all.

        It is one write to the end of the file, by one process at a time. Behind half a line, which is what may be left
        when the power goes, it begins a line of its own.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        line = _line(record)
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            with _alone(handle):
                size = os.fstat(handle).st_size
                if size:
                    os.lseek(handle, size - 1, os.SEEK_SET)
                    line = line if os.read(handle, 1) == b"\n" else b"\n" + line
                if os.write(handle, line) < len(line):
                    raise OSError(f"{self.path} could not be written as a whole. Make room on the disk.")
                os.fsync(handle)
        finally:
            os.close(handle)

    def read(self) -> Contents:
        """All that is there, packed or not; a store that was never written to is empty."""
        return read_records(self.folder) if _files(self.folder) else Contents({})


def read_records(path: Path) -> Contents:
    """The records of a file, `.jsonl` or `.jsonl.gz`, or of the folder of a store: what was packed, and what is new."""
    if path.is_dir():
        contents = [_read_file(file) for file in _files(path)]
        every = [record for each in contents for record in each.records.values()]
        if contents:
            return Contents(_that_count(every), tuple(line for each in contents for line in each.broken))
        path = path / RECORDS
    if not path.is_file():
        raise ValueError(f"there is no file {path}, expected the records of a store. Name the folder that holds them.")
    return _read_file(path)


def _files(folder: Path) -> list[Path]:
    return [path for path in (folder / f"{RECORDS}.gz", folder / RECORDS) if path.is_file()]


def _read_file(path: Path) -> Contents:
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    records, broken = list[Record](), list[str]()
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(line))
        except (ValueError, TypeError):  # not JSON, or without a field that a record has
            broken.append(f"{path}:{number} is not a record ({len(line)} bytes); it is left out.")
    if broken and not records and not _is_torn(content):
        raise ValueError(
            f"{path} is not part of a store: none of its lines is a record. Name a folder, or a file of records, that "
            "idgnn reproduce wrote."
        )
    return Contents(_that_count(records), tuple(broken))


def _is_torn(content: bytes) -> bool:
    """Whether all there is may be the beginning of a record, or zeros in its place, as when the power goes."""
    return b"\n" not in content and content.startswith((b"{", b"\0"))


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Writes records to `.jsonl`, or packed to `.jsonl.gz`: the same records give the same bytes."""
    content = b"".join(_line(record) for record in sorted(records, key=lambda record: record.key))
    if path.suffix != ".gz":
        write_text(path, content.decode())
        return
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0))


def merge(sources: Iterable[Path], store: Store) -> Contents:
    """Adds to a store what others hold and it does not; returns what it holds now, and the broken lines of all."""
    here, broken = store.read(), list[str]()
    records = dict(here.records)
    for source in sources:
        there = read_records(source)
        broken += there.broken
        for key, record in there.records.items():
            known = records.get(key)
            if known is None or (known.error is not None and record != known and record.error is None):
                store.append(record)
                records[key] = record
    return Contents(records, (*here.broken, *broken))


def _that_count(records: Iterable[Record]) -> dict[str, Record]:
    """A result is never replaced; an error is by whatever comes later."""
    found = dict[str, Record]()
    for record in records:
        if record.key not in found or found[record.key].error is not None:
            found[record.key] = record
    return found


def _line(record: Record) -> bytes:
    return json.dumps(record.as_dict(), sort_keys=True).encode() + b"\n"  # in a JSON text there is no end of line


def _record(line: bytes) -> Record:
    values = json.loads(line)
    if not isinstance(values, dict):
        raise ValueError("expected an object.")
    record = Record(**values)
    if not isinstance(record.key, str) or (record.result is None) == (record.error is None):
        raise ValueError("expected a key, and either a result or an error.")
    kinds = {"seconds": (int, float), "machine": str, "date": str, "versions": dict, "job": dict}
    if not all(isinstance(getattr(record, name), kind) for name, kind in kinds.items()):
        raise ValueError("expected seconds, a machine, a date, versions and a job.")
    return record


@contextmanager
def _alone(handle: int) -> Iterator[None]:
    """Keeps other processes from writing; the system frees the lock however a process ends. Windows has none."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)
