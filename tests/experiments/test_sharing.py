"""Several grids with one store share the runs: each is run once, by one of them, and counts for all."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

import pytest

from idgnn.experiments.claims import Claims
from idgnn.experiments.runner import run
from idgnn.experiments.spec import MeasureJob, RunRecord, Spec, job_as_dict
from idgnn.experiments.store import Store
from tests.experiments.tiny_specs import tiny

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="needs file locks"),
    # Newer versions of Python warn of what pytest-xdist makes of every process.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@dataclass
class StubPool:
    """Runs that take a moment, and a list of those that were started."""

    number: int
    started: list[str] = field(default_factory=list)
    busy: dict[int, Spec] = field(default_factory=dict)

    def pool(self) -> "StubPool":
        return self

    def start(self, number: int, spec: Spec) -> None:
        self.started.append(spec.key)
        self.busy[number] = spec

    def ended(self, timeout: float) -> list[tuple[int, RunRecord]]:
        time.sleep(0.01)
        number, spec = self.busy.popitem()
        failed = spec.seed % 5 == 4
        result, error = (None, "ValueError: no") if failed else ({"valid": {}}, None)
        return [(number, RunRecord(spec.key, job_as_dict(spec.job), result, error))]

    def close(self, at_once: bool) -> None:
        pass


def together(specs: list[Spec], store: Store, pools: list[StubPool]) -> list:
    states = [None] * len(pools)

    def one(i: int) -> None:
        states[i] = run(specs, store, pools[i])

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(pools))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return states


def test_every_run_is_run_once_and_counts_for_all(tmp_path):
    specs = [tiny(seed) for seed in range(40)]
    pools = [StubPool(2), StubPool(1), StubPool(3)]
    states = together(specs, Store(tmp_path), pools)
    started = [key for pool in pools for key in pool.started]
    assert sorted(started) == sorted(spec.key for spec in specs), "some were run twice, or never"
    assert sum(bool(pool.started) for pool in pools) > 1, "one did all the work"
    for state in states:
        assert len(state.finished) == 32 and len(state.failed) == 8 and not state.waiting and not state.running
    assert len(Store(tmp_path).read().records) == 40
    assert not (tmp_path / "claims").exists()


def test_timed_runs_of_different_processes_come_one_after_the_other(tmp_path):
    timed = [Spec("table4", "forward", "gcn", "text", seed, MeasureJob("run-time", seed=seed)) for seed in range(3)]
    running, most = [0], [0]

    class Counting(StubPool):
        def start(self, number: int, spec: Spec) -> None:
            running[0] += 1
            most[0] = max(most[0], running[0])
            super().start(number, spec)

        def ended(self, timeout: float) -> list[tuple[int, RunRecord]]:
            found = super().ended(timeout)
            running[0] -= 1
            return found

    states = together(timed, Store(tmp_path), [Counting(2), Counting(2)])
    assert most[0] == 1 and all(len(state.finished) == 3 for state in states)


def test_what_was_appended_before_the_grid_starts_is_not_run(tmp_path):
    specs, store = [tiny(0), tiny(1)], Store(tmp_path)
    since = store.end()
    store.append(RunRecord(specs[0].key, {}, {"valid": {}}))  # by another process, after we read the store
    pool = StubPool(1)
    state = run(specs, store, pool, since=since)
    assert pool.started == [specs[1].key] and state.finished == specs


def test_a_claim_of_a_killed_process_is_free(tmp_path):
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from idgnn.experiments.claims import Claims\n"
        "claims = Claims(Path(sys.argv[1]))\n"
        "print(claims.take('job'), flush=True)\n"
        "time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ours = Claims(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        assert not ours.take("job") and ours.take("another")
        other.kill()
    assert ours.take("job")
    ours.close()
    assert not (tmp_path / "claims").exists()


def _take_and_release(folder, key: str, times: int, found) -> None:
    claims, count = Claims(folder), 0
    counter = folder / "counter"
    for _ in range(times):
        if claims.take(key):
            # Not atomic: two that hold the claim at the same time would lose some.
            counter.write_text(str(int(counter.read_text()) + 1))
            count += 1
            claims.release(key)
    found.put(count)


def test_a_claim_is_never_held_twice_though_its_file_comes_and_goes(tmp_path):
    (tmp_path / "counter").write_text("0")
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    children = [context.Process(target=_take_and_release, args=(tmp_path, "job", 300, found)) for _ in range(4)]
    for child in children:
        child.start()
    total = sum(found.get(timeout=60) for _ in children)
    for child in children:
        child.join(60)
    assert int((tmp_path / "counter").read_text()) == total > 0


def test_broken_lines_of_others_are_skipped(tmp_path):
    store = Store(tmp_path)
    store.append(RunRecord("a", {}, {}))
    position = store.end()
    with store.path.open("ab") as file:
        file.write(b'{"key": \nnot a record\n')
    store.append(RunRecord("b", {}, {}))
    with store.path.open("ab") as file:
        file.write(b'{"key": "c"')  # still being written
    records, end = store.read_since(position)
    assert [record.key for record in records] == ["b"]
    assert store.read_since(end) == ([], end)
