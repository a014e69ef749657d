"""A run that is killed at random moments, again and again, gives the result of an undisturbed run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from idgnn.training.run_folder import RunFolder
from tests.training import killed_run

EXACT = ("model.safetensors", "model.json", "predictions.csv")


def metrics(folder: Path) -> list[dict]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_nothing_is_lost_when_a_run_is_killed(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(killed_run.__file__), str(tmp_path), "0", "link-prediction"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4, "the run was hardly ever killed"
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for name in EXACT:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert metrics(killed) == metrics(whole) and len(metrics(whole)) == killed_run.EPOCHS
    ours, theirs = (RunFolder(folder).read() for folder in (killed, whole))
    for name in ("settings", "dataset", "task"):
        assert ours[name] == theirs[name]
    for name in ("metric", "last", "best", "num_parameters", "width"):
        assert ours["result"][name] == theirs["result"][name]
