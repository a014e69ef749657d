"""The store of results: one record per line of a file that several processes may append to. Imports no PyTorch."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from idgnn.experiments.spec import RunRecord
from idgnn.writing import replacing, write_text

RECORDS = "records.jsonl"
DEFAULT = Path("results")


@dataclass(frozen=True)
class Contents:
    """The contents of a store: the valid record of each key, and the lines that could not be read."""

    records: dict[str, RunRecord]
    broken: tuple[str, ...] = ()
    """A sentence for each line that is not a record, such as one whose process was killed while it was written."""

    @property
    def finished(self) -> dict[str, RunRecord]:
        """Records with a result."""
        return {key: record for key, record in self.records.items() if record.error is None}

    @property
    def failed(self) -> dict[str, RunRecord]:
        """Records of runs that ended with an error and were not repeated successfully."""
        return {key: record for key, record in self.records.items() if record.error is not None}


class Store:
    """A folder with the file `records.jsonl`, which is only appended to; the first record creates it.

    Records may also be compressed in `records.jsonl.gz` beside it, as they are in the repository. Of several records of
    a job the first with a result is valid, and if there is none the last error.
    """

    def __init__(self, folder: Path | str = DEFAULT) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file, expected the folder of a store. Name the folder that it is in.")

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / RECORDS

    def append(self, record: RunRecord) -> None:
        """Appends a record, which is on the disk when this returns, completely or not at all.

        It is one write to the end of the file, by one process at a time. After an incomplete line, which a power
        failure may leave, it starts a new line.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        line = _line(record)
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            with _locked(handle):
                size = os.fstat(handle).st_size
                if size:
                    os.lseek(handle, size - 1, os.SEEK_SET)
                    line = line if os.read(handle, 1) == b"\n" else b"\n" + line
                if os.write(handle, line) < len(line):
                    raise OSError(f"{self.path} could not be written completely. Free space on the disk.")
                os.fsync(handle)
        finally:
            os.close(handle)

    def end(self) -> int:
        """Where the next record will be appended."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def read_since(self, position: int) -> tuple[list[RunRecord], int]:
        """The records that any process appended since :meth:`end` was `position`, and the new position."""
        if self.end() <= position:
            return [], position
        with self.path.open("rb") as file:
            file.seek(position)
            content = file.read()
        complete = content.rfind(b"\n") + 1
        records = list[RunRecord]()
        for line in content[:complete].split(b"\n"):
            with suppress(ValueError, TypeError):  # a broken line, which `read` reports
                records.append(_record(line))
        return records, position + complete

    def read(self) -> Contents:
        """All records, compressed or not; a store that does not exist yet is empty."""
        return read_records(self.folder) if _files(self.folder) else Contents({})


def read_records(path: Path) -> Contents:
    """The records of a file, `.jsonl` or `.jsonl.gz`, or of the folder of a store, which may hold both."""
    if path.is_dir():
        contents = [_read_file(file) for file in _files(path)]
        every = [record for each in contents for record in each.records.values()]
        if contents:
            return Contents(_valid(every), tuple(line for each in contents for line in each.broken))
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
    records, broken = list[RunRecord](), list[str]()
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(line))
        except (ValueError, TypeError):  # not JSON, or without a field that a record has
            broken.append(f"{path}:{number} is not a record ({len(line)} bytes); it is skipped.")
    if broken and not records and not _is_torn(content):
        raise ValueError(
            f"{path} is not part of a store: none of its lines is a record. Name a folder, or a file of records, that "
            "idgnn reproduce wrote."
        )
    return Contents(_valid(records), tuple(broken))


def _is_torn(content: bytes) -> bool:
    """Whether this may be an incomplete first record, or zeros in its place, as a power failure leaves them."""
    return b"\n" not in content and content.startswith((b"{", b"\0"))


def write_records(path: Path, records: Iterable[RunRecord]) -> None:
    """Writes records to `.jsonl` or compressed `.jsonl.gz`: the same records give the same bytes."""
    content = b"".join(_line(record) for record in sorted(records, key=lambda record: record.key))
    if path.suffix != ".gz":
        write_text(path, content.decode())
        return
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0))


def merge(sources: Iterable[Path], store: Store) -> Contents:
    """Adds the records of other stores that a store lacks; returns its new contents, and the broken lines of all."""
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


def _valid(records: Iterable[RunRecord]) -> dict[str, RunRecord]:
    """A result is never replaced; an error is replaced by a later record."""
    found = dict[str, RunRecord]()
    for record in records:
        if record.key not in found or found[record.key].error is not None:
            found[record.key] = record
    return found


def _line(record: RunRecord) -> bytes:
    return json.dumps(record.as_dict(), sort_keys=True).encode() + b"\n"  # JSON text contains no newline


def _record(line: bytes) -> RunRecord:
    values = json.loads(line)
    if not isinstance(values, dict):
        raise ValueError("expected an object.")
    record = RunRecord(**values)
    if not isinstance(record.key, str) or (record.result is None) == (record.error is None):
        raise ValueError("expected a key, and either a result or an error.")
    kinds = {"seconds": (int, float), "machine": str, "date": str, "versions": dict, "job": dict}
    if not all(isinstance(getattr(record, name), kind) for name, kind in kinds.items()):
        raise ValueError("expected seconds, a machine, a date, versions and a job.")
    return record


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    """Keeps other processes from writing; the system frees the lock when the process ends. Windows has no such lock."""
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
