"""Names of run folders, SIGTERM, and a run.json that was changed by hand."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from idgnn.cli.main import main
from idgnn.cli.run_names import new_folder, table_changes
from idgnn.cli.tables import TableOptions
from idgnn.graphs.sources import FileSource
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.relational import RelationalSettings
from idgnn.training.run_folder import ChangedRecordWarning, RunFolder
from idgnn.training.run_settings import RunSettings, TrainOptions


def settings(**changes) -> RunSettings:
    return RunSettings("ENZYMES", TaskSettings(name="graph-classification", features="auto"), **changes)


def test_names_carry_what_differs():
    plain, other = settings(), settings(model=ModelSettings(layers=4), training=TrainOptions(lr=0.003, device="cpu"))
    assert new_folder(Path("runs"), plain).name.startswith("ENZYMES_graph-classification_gcn-full_seed0_")
    name = new_folder(Path("runs"), other).name
    assert name.startswith("ENZYMES_graph-classification_gcn-full_layers=4_lr=0.003_seed0_")
    files = RunSettings(
        FileSource(Path("a b/e.csv"), label="my class?"), TaskSettings(name="node-classification", features="auto")
    )
    assert new_folder(Path("runs"), files).name.startswith("e_my-class-_node-classification_gcn-full_seed0_")


def test_names_of_one_second_do_not_collide():
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: new_folder(Path("runs"), settings()), range(200)))
    assert len(set(names)) == 200


def test_a_changed_record_is_noticed(tmp_path):
    folder = RunFolder(tmp_path)
    folder.begin(settings(), {"name": "ENZYMES"}, {})
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text())))  # formatted in another way
    folder.read()
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.warns(ChangedRecordWarning, match=r"run.json was changed after the run wrote it"):
        folder.settings()


def test_sigterm_says_how_to_continue(tmp_path):
    edges = tmp_path / "e.csv"
    edges.write_text("source,target\n" + "".join(f"{i},{(i * 7 + 1) % 40}\n" for i in range(40)))
    given = ["--edges", str(edges), "--task", "link-prediction", "--layers", "2", "--epochs", "100000"]
    command = [sys.executable, "-m", "idgnn", "train", *given, "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as run:
        assert run.stdout is not None
        first = run.stdout.readline()
        while not list(tmp_path.glob("runs/*/checkpoint.safetensors")):
            assert run.poll() is None, first
        run.send_signal(signal.SIGTERM)
        said = run.stdout.read()
    assert run.returncode == 143
    [folder] = (tmp_path / "runs").iterdir()
    assert f"train --resume {folder}" in said.replace("\n", "")


def test_sigterm_is_left_as_it_was():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_defaults_on_tables_are_those_of_python():
    assert list(table_changes(RelationalSettings(), TableOptions())) == []
    assert list(table_changes(RelationalSettings(num_layers=2), TableOptions())) == ["layers=2"]
