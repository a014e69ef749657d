"""A store loses nothing, whoever writes to it and however a process ends."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from idgnn.experiments.spec import RunRecord
from idgnn.experiments.store import Store, merge, read_records, write_records

GOOD = RunRecord("a", {"train": "ScaleFree"}, {"valid": {"accuracy": 0.5}}, seconds=1.0)
BAD = RunRecord("a", {"train": "ScaleFree"}, None, "ValueError: no")


def test_what_is_added_is_read(tmp_path):
    store = Store(tmp_path / "new" / "results")
    assert store.read().records == {}
    records = [replace(GOOD, key=str(i), result={"text": "line\nline"}) for i in range(5)]
    for record in records:
        store.append(record)
    assert store.read().records == {record.key: record for record in records}
    assert store.path.read_bytes().count(b"\n") == 5


def test_a_result_replaces_an_error_and_never_the_reverse(tmp_path):
    for order, expected in (
        ([BAD, GOOD], GOOD),
        ([GOOD, BAD], GOOD),
        ([GOOD, replace(GOOD, seconds=2.0)], GOOD),
        ([BAD, replace(BAD, error="later")], replace(BAD, error="later")),
    ):
        store = Store(tmp_path / str(len(list(tmp_path.iterdir()))))
        for record in order:
            store.append(record)
        assert store.read().records == {"a": expected}
        assert len(store.read().finished) + len(store.read().failed) == 1


@pytest.mark.parametrize("cut", [1, 20, -2, -1])
def test_an_incomplete_line_does_no_harm(tmp_path, cut):
    store = Store(tmp_path)
    store.append(replace(GOOD, key="first"))
    whole = store.path.read_bytes()
    store.path.write_bytes(whole + whole.replace(b"first", b"other")[:cut])
    assert "first" in store.read().records
    store.append(replace(GOOD, key="next"))
    contents = store.read()
    if cut == -1:  # only the end of the line was missing
        assert set(contents.records) == {"first", "other", "next"} and not contents.broken
    else:
        assert set(contents.records) == {"first", "next"}
        assert len(contents.broken) == 1 and "records.jsonl:2 is not a record" in contents.broken[0]


@pytest.mark.parametrize("content", [b"", b"\n", b'{"key": "a", "jo', b"\0" * 9])
def test_a_store_may_be_empty_or_hold_only_an_incomplete_record(tmp_path, content):
    """The power may go while the very first record is written."""
    store = Store(tmp_path)
    store.path.write_bytes(content)
    assert store.read().records == read_records(store.path).records == {}
    store.append(GOOD)
    assert store.read().records == {"a": GOOD}


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'"text"',
        b'{"key": "b"}',
        b'{"key": "b", "job": {}, "result": null}',
        b'{"key": "b", "job": {}, "result": {}, "seconds": "abc"}',
        b'{"key": "b", "job": {}, "result": {}, "versions": null}',
        b"\0" * 9,
    ],
)
def test_lines_that_are_not_records_are_reported_and_skipped(tmp_path, line):
    store = Store(tmp_path)
    store.append(GOOD)
    with store.path.open("ab") as file:
        file.write(line + b"\n")
    store.append(replace(GOOD, key="c"))
    contents = store.read()
    assert set(contents.records) == {"a", "c"} and len(contents.broken) == 1


def test_two_processes_add_at_once(tmp_path):
    code = (
        "import sys\n"
        "from idgnn.experiments.spec import RunRecord\n"
        "from idgnn.experiments.store import Store\n"
        "store = Store(sys.argv[1])\n"
        "for i in range(200):\n"
        "    store.append(RunRecord(f'{sys.argv[2]}-{i}', {}, {'curve': [sys.argv[2]] * 2000}))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], env=environment) for name in "AB"]
    assert [each.wait() for each in processes] == [0, 0]
    contents = Store(tmp_path).read()
    assert set(contents.records) == {f"{name}-{i}" for name in "AB" for i in range(200)}
    assert not contents.broken
    assert all(set((record.result or {})["curve"]) == {key[0]} for key, record in contents.records.items())


def test_compressed_records_are_the_same_and_deterministic(tmp_path):
    records = [replace(GOOD, key=key) for key in "cab"]
    for name in ("r.jsonl", "r.jsonl.gz"):
        write_records(tmp_path / name, records)
        assert read_records(tmp_path / name).records == {record.key: record for record in records}
    assert gzip.decompress((tmp_path / "r.jsonl.gz").read_bytes()) == (tmp_path / "r.jsonl").read_bytes()
    write_records(tmp_path / "again.jsonl.gz", reversed(records))
    assert (tmp_path / "again.jsonl.gz").read_bytes() == (tmp_path / "r.jsonl.gz").read_bytes()
    assert [json.loads(line)["key"] for line in (tmp_path / "r.jsonl").read_text().splitlines()] == ["a", "b", "c"]


def test_compressed_records_are_part_of_a_store_and_stay_when_it_grows(tmp_path):
    write_records(tmp_path / "records.jsonl.gz", [GOOD])
    store = Store(tmp_path)
    assert store.read().records == read_records(tmp_path).records == {GOOD.key: GOOD}
    store.append(replace(GOOD, key="new"))
    assert set(store.read().finished) == set(read_records(tmp_path).finished) == {GOOD.key, "new"}


def test_stores_of_several_machines_are_merged(tmp_path):
    one, two, both = (Store(tmp_path / name) for name in ("one", "two", "both"))
    one.append(BAD)
    one.append(replace(GOOD, key="b"))
    two.append(GOOD)
    two.append(replace(BAD, key="b"))
    two.append(replace(BAD, key="c"))
    write_records(tmp_path / "three.jsonl.gz", [replace(GOOD, key="d")])
    merged = merge([one.folder, two.path, tmp_path / "three.jsonl.gz"], both)
    assert merged.records == both.read().records
    assert set(merged.finished) == {"a", "b", "d"} and set(merged.failed) == {"c"}
    size = both.path.stat().st_size
    merge([one.folder, two.folder], both)
    assert both.path.stat().st_size == size, "what is there is not added again"


def test_what_is_not_a_store_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file, expected the folder of a store"):
        Store(tmp_path / "file")
    with pytest.raises(ValueError, match="there is no file"):
        merge([tmp_path / "nowhere"], Store(tmp_path / "to"))
    for content in ("source,target\nAnn,Ben\n", "source,target", '{"epoch": 1}\n{"epoch": 2}\n', '{"a": 1}\n\n{"a'):
        (tmp_path / "other.csv").write_text(content)
        with pytest.raises(ValueError, match=r"other.csv is not part of a store: none of its lines is a record. Name"):
            read_records(tmp_path / "other.csv")
    (tmp_path / "bad.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match="cannot be read"):
        read_records(tmp_path / "bad.jsonl.gz")
