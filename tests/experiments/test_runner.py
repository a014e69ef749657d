"""Whatever happens to one run, the others go on, and nothing that was done is lost."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idgnn.experiments.estimate import Estimate, Estimator
from idgnn.experiments.runner import GridState, Watcher, run
from idgnn.experiments.spec import MeasureJob, RunRecord, Spec
from idgnn.experiments.store import Store
from idgnn.experiments.worker import Workers, work, workers_on
from tests.experiments import killed_grid
from tests.experiments.tiny_specs import broken, tiny


def what_counts(store: Store) -> dict[str, tuple]:
    """All but times and dates."""
    said = {key: (record.error or "").splitlines()[:1] for key, record in store.read().records.items()}
    return {key: (record.job, record.result, said[key]) for key, record in store.read().records.items()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_grid_that_is_killed_twenty_times_has_the_results_of_one_that_is_not(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(killed_grid.__file__), str(tmp_path), "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 10, "the grid was hardly ever killed"
    whole, killed = Store(tmp_path / "whole"), Store(tmp_path / "killed")
    assert what_counts(killed) == what_counts(whole)
    assert len(whole.read().records) == len(killed_grid.SPECS) and len(whole.read().failed) == 2


class KillsTheFirst(Watcher):
    """Kills the process of the first run, once."""

    def __init__(self) -> None:
        self.killed, self.order = False, list[Spec]()

    def update(self, state: GridState) -> None:
        if not self.killed:
            (worker,) = multiprocessing.active_children()
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            self.killed = True

    def ended(self, spec: Spec, record: RunRecord) -> None:
        self.order.append(spec)


def test_runs_that_raise_and_workers_that_are_killed_are_recorded_and_the_others_continue(tmp_path):
    store, watcher = Store(tmp_path), KillsTheFirst()
    specs = [tiny(0), broken(), tiny(1)]
    end = run(specs, store, Workers(1), watcher=watcher)
    assert watcher.order == specs, "they are run in the given order"
    assert end.finished == [specs[2]] and not end.waiting and not end.running
    failed = store.read().failed
    assert "the process died" in (failed[specs[0].key].error or "")
    assert (failed[specs[1].key].error or "").startswith("ValueError: there is no dataset 'Atlantis'.")
    assert "Traceback" in (failed[specs[1].key].error or "")
    assert not multiprocessing.active_children()
    # What failed is run again by the next call, and a result takes the place of the error.
    run([specs[0]], store, Workers(1))
    assert set(store.read().finished) == {specs[0].key, specs[2].key}


class FixedEstimator(Estimator):
    """Says how long each takes."""

    def __init__(self, seconds: dict[Spec, float]) -> None:
        super().__init__()
        self.known = {spec.job: value for spec, value in seconds.items()}

    def __call__(self, job):
        return Estimate(self.known[job], 0)


class InstantWorker:
    """A process that answers at once."""

    def __init__(self, number: int, workers: Workers) -> None:
        self.number, self.started = number, 0.0
        self.pipe, self.theirs = multiprocessing.Pipe()

    def start(self, spec: Spec) -> None:
        self.theirs.send(RunRecord(spec.key, {}, {}))

    def result(self) -> RunRecord:
        return self.pipe.recv()

    def end(self, at_once: bool) -> None:
        self.pipe.close()
        self.theirs.close()


def test_a_run_that_is_expected_to_pass_the_time_limit_does_not_start(monkeypatch, tmp_path):
    monkeypatch.setattr("idgnn.experiments.worker.Worker", InstantWorker)
    short, long = tiny(0), tiny(1)
    end = run([long], Store(tmp_path / "long"), Workers(1), FixedEstimator({long: 100}), time_limit=50)
    assert end.waiting == [long] and not end.finished
    end = run([long, short], Store(tmp_path / "both"), Workers(1), FixedEstimator({long: 100, short: 1}), time_limit=50)
    assert end.waiting == [long] and end.finished == [short]


def test_timed_runs_are_alone(monkeypatch, tmp_path):
    timed = Spec("table4", "forward", "gcn", "text", 0, MeasureJob("run-time"))
    seen = []

    class Recording(Watcher):
        def update(self, state: GridState) -> None:
            seen.append([spec for spec, _ in state.running.values()])

    monkeypatch.setattr("idgnn.experiments.worker.Worker", InstantWorker)
    specs = [tiny(0), tiny(1), timed, tiny(2), tiny(3)]
    end = run(specs, Store(tmp_path), Workers(2), watcher=Recording())
    assert len(end.finished) == 5
    assert [timed] in seen and max(map(len, seen)) == 2
    assert all(running == [timed] for running in seen if timed in running)


def test_a_worker_ends_if_the_process_that_started_it_was_killed_before_it_looks():
    # On a busy machine a worker takes seconds to start; its parent process is another one by then.
    ours, theirs = multiprocessing.Pipe()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(theirs, "cpu", 1, 1, ended.pid))
    worker.start()
    worker.join(60)
    assert worker.exitcode == 1
    ours.close()
    theirs.close()


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    code = (
        "import sys, multiprocessing\n"
        "from pathlib import Path\n"
        "from idgnn.experiments.runner import Watcher, run\n"
        "from idgnn.experiments.store import Store\n"
        "from idgnn.experiments.worker import Workers\n"
        "from tests.experiments.tiny_specs import tiny\n"
        "class Says(Watcher):\n"
        "    def update(self, progress):\n"
        "        print(*[each.pid for each in multiprocessing.active_children()], flush=True)\n"
        "if __name__ == '__main__':\n"
        "    run([tiny(0, epochs=10**6)], Store(sys.argv[1]), Workers(1), watcher=Says())\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], env=environment, stdout=subprocess.PIPE
    ) as main:
        assert main.stdout is not None
        worker = int(main.stdout.readline())
        time.sleep(1)
        main.kill()
    for _ in range(200):
        if not _alive(worker):
            break
        time.sleep(0.05)
    assert not _alive(worker)


def _alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").is_file():  # one that nobody has buried yet counts as dead
        try:
            return status.read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_cores_are_shared_among_the_processes_of_a_cpu(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert workers_on("cpu", 2) == Workers(2, ("cpu",), 4)
    assert workers_on("cpu", 16).threads == 1
    assert workers_on("cpu").number == 4
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert workers_on("cpu", 2).threads == 2
