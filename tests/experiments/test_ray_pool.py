"""A grid on a local Ray cluster of two workers gives the records of one without Ray."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass

import psutil
import pytest

from idgnn.cli.main import main
from idgnn.experiments.ray_pool import RayWorkers, ray_workers
from idgnn.experiments.runner import GridState, Watcher, run
from idgnn.experiments.store import Store
from idgnn.experiments.worker import Workers
from tests.experiments.tiny_specs import broken, tiny


def test_without_ray_a_sentence_says_how_to_install_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.exceptions", None)
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "table1", "--quick", "--ray", "--store", str(tmp_path)])
    assert stop.value.code == 2 and "pip install 'idgnn[ray]'" in capsys.readouterr().err


SCRIPT = """
import sys
from tests.experiments.test_ray_pool import grid
grid(sys.argv[1])
"""


@dataclass
class KillsOnce(Watcher):
    """Kills a worker of Ray while it works, once."""

    killed: int = 0

    def update(self, state: GridState) -> None:
        if self.killed:
            return
        for each in psutil.process_iter(["name", "cmdline"]):
            if "ray::remote_attempt" in " ".join(each.info["cmdline"] or ()) and _is_ours(each):
                each.kill()
                self.killed = each.pid
                return


def _is_ours(process: psutil.Process) -> bool:
    return any(parent.pid == os.getpid() for parent in process.parents())


def grid(folder: str) -> None:
    """Runs in a process of its own: Ray leaves threads and signal handlers behind."""
    import ray

    ray.init(address="local", num_cpus=2, log_to_driver=False, logging_level="error", include_dashboard=False)
    workers = ray_workers(device="cpu")
    assert workers == RayWorkers(2, 0.0, 1), workers
    watcher = KillsOnce()
    state = run([tiny(0, epochs=60), tiny(1), broken(), tiny(2)], Store(folder), workers, watcher=watcher)
    assert watcher.killed, "no worker was killed"
    assert len(state.finished) == 3 and len(state.failed) == 1, state
    assert not ray.is_initialized()


def test_two_workers_one_of_them_killed(tmp_path):
    pytest.importorskip("ray")
    started = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RAY_AUTH_MODE": "disabled"}
    environment |= {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "ray")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    run([tiny(0, epochs=60), tiny(1), broken(), tiny(2)], Store(tmp_path / "here"), Workers(1))
    ours, theirs = Store(tmp_path / "here").read(), Store(tmp_path / "ray").read()
    assert ours.records.keys() == theirs.records.keys() and ours.finished.keys() == theirs.finished.keys()
    for key, record in ours.finished.items():
        assert record.result == theirs.finished[key].result
    print(f"{time.monotonic() - started:.0f} s")
