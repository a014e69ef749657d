"""`idgnn reproduce`: runs what is missing, reports what it did, and stops on Ctrl-C."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import get_args

import psutil
import pytest

from idgnn.cli.main import main
from idgnn.cli.reproduce import What
from idgnn.experiments.grid import Choice
from idgnn.experiments.spec import RunRecord, job_as_dict
from idgnn.experiments.store import Store
from idgnn.experiments.tables import TABLES
from idgnn.graphs.catalog import find
from idgnn.graphs.raw_files import expected

CHOSEN = ["--columns", "path-SmallWorld", "--models", "gcn", "sage", "--seeds", "0", "--device", "cpu", "--jobs", "1"]
LABEL = "quick: not comparable with published numbers: "


def done(store: Store, specs) -> None:
    """As if they had been run."""
    for spec in specs:
        store.append(RunRecord(spec.key, job_as_dict(spec.job), {"metric": "accuracy", "valid": {"accuracy": 0.5}}))


def test_every_table_is_a_choice():
    assert set(get_args(What)) == {"list", "all", "merge", *TABLES}


def test_what_is_missing_is_run_once(tmp_path, capsys):
    store = Store(tmp_path)
    command = ["reproduce", "table2", *CHOSEN, "--quick", "--store", str(tmp_path)]
    specs = Choice(("table2",), ("path-SmallWorld",), ("gcn", "sage"), seeds=(0,), quick=True).specs()
    done(store, specs[:1])
    main(command)
    said = capsys.readouterr().out
    assert f"{LABEL}1 of 2 runs have finished" in said and f"{LABEL}1 finished, 0 failed." in said
    assert all(line.startswith(LABEL) for line in said.splitlines())
    assert f"{LABEL}Next: idgnn report {tmp_path} --quick\n" in said
    assert set(store.read().finished) == {spec.key for spec in specs}
    before = store.path.read_bytes()
    main(command)
    said = f"{LABEL}2 of 2 runs have finished ({store.path}).\n{LABEL}Next: idgnn report {tmp_path} --quick\n"
    assert capsys.readouterr().out == said
    assert store.path.read_bytes() == before


def offline(monkeypatch, data) -> None:
    """No dataset but what lies in that folder, and no network."""
    monkeypatch.setenv("IDGNN_DATA", str(data))
    monkeypatch.setenv("IDGNN_CACHE", str(data / "cache"))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")


def test_failed_runs_are_listed_and_the_exit_code_is_1(tmp_path, capsys, monkeypatch):
    offline(monkeypatch, tmp_path)
    for name in expected(find("ENZYMES")):  # the files are there, but they are others
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    chosen = ["--columns", "node-ENZYMES", "--models", "gcn", "--seeds", "0", "--device", "cpu", "--jobs", "1"]
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "table2", *chosen, "--store", str(tmp_path / "store")])
    said = capsys.readouterr().out
    assert stop.value.code == 1
    assert "0 finished, 1 failed." in said and "failed: table2 node-ENZYMES gcn text seed 0:" in said
    assert "The same command runs what is missing." in said and f"Next: idgnn report {tmp_path / 'store'}\n" in said


def test_missing_datasets_are_reported_once_and_the_others_are_run(tmp_path, capsys, monkeypatch):
    offline(monkeypatch, tmp_path)
    # Regular graphs are generated; link prediction on PROTEINS is in two tables, and is one run.
    chosen = ["--columns", "n64-d4", "node-ENZYMES", "link-PROTEINS", "--models", "layers-3", "gcn", "sage"]
    where = ["--seeds", "0", "--quick", "--device", "cpu", "--jobs", "1", "--store", str(tmp_path / "store")]
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "all", *chosen, *where])
    told = capsys.readouterr()
    notes = [line for line in told.err.splitlines() if line.startswith("idgnn: note:")]
    assert stop.value.code == 1 and len(notes) == 1
    assert all(word in notes[0] for word in ("ENZYMES", "PROTEINS", "4 runs", "set IDGNN_DATA", "connect"))
    assert f"{LABEL}1 finished, 0 failed, 4 not run (no data)." in told.out
    assert f"{LABEL}not run: table2 node-ENZYMES text: 2 runs on ENZYMES" in told.out
    records = Store(tmp_path / "store").read().records.values()
    assert [record.job.get("measure") for record in records] == ["regular-graphs"]


def test_a_dry_run_says_what_it_would_download(tmp_path, capsys, monkeypatch):
    offline(monkeypatch, tmp_path)
    main(["reproduce", "table2", "--columns", "node-ENZYMES", "--dry-run", "--device", "cpu", "--store", str(tmp_path)])
    assert "downloaded first if possible: ENZYMES." in " ".join(capsys.readouterr().out.split())


def test_a_dry_run_runs_nothing(tmp_path, capsys):
    main(["reproduce", "table2", *CHOSEN, "--dry-run", "--store", str(tmp_path / "store")])
    said = " ".join(capsys.readouterr().out.split())
    assert "estimates" in said and "2 runs, 1 side by side on cpu" in said and "GiB" in said
    assert not (tmp_path / "store").exists()


def test_a_dry_run_says_where_its_estimates_come_from(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def said() -> str:
        main(["reproduce", "table2", *CHOSEN, "--dry-run", "--store", "mine"])
        return " ".join(capsys.readouterr().out.split())

    assert "2 from a default rate, because no run is recorded" in said()
    spec = Choice(("table2",), ("node-SmallWorld",), ("gcn",), seeds=(0,)).specs()[0]
    Store("results").append(RunRecord(spec.key, job_as_dict(spec.job), {}, seconds=50.0, machine="elsewhere"))
    assert "2 from the rate of 1 recorded run on other CPUs" in said()
    Store("results").path.write_text("other content\nof another program\n")
    assert "because no run is recorded" in said()


def test_the_list_counts_what_is_done(tmp_path, capsys):
    done(Store(tmp_path), Choice(("table2",), ("node-SmallWorld",), ("gcn",)).specs())
    main(["reproduce", "list", "--columns", "node-SmallWorld", "--store", str(tmp_path)])
    lines = [line for line in capsys.readouterr().out.splitlines() if "│ node-SmallWorld" in line]
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert [row[2] for row in rows] == ["text", "released", "recommended"], "all protocols, unless some are chosen"
    assert rows[0] == ["table2", "node-SmallWorld", "text", "36", "3", "0"]


def test_stores_are_merged(tmp_path, capsys):
    specs = Choice(("table2",), ("node-SmallWorld",), ("gcn",)).specs()
    done(Store(tmp_path / "A"), specs[:2])
    done(Store(tmp_path / "B"), specs[1:])
    with Store(tmp_path / "B").path.open("ab") as file:
        file.write(b"half a li")
    main(["reproduce", "merge", str(tmp_path / "A"), str(tmp_path / "B"), "--store", str(tmp_path / "C")])
    told = capsys.readouterr()
    assert "holds 3 results and 0 failed runs" in told.out and "is not a record" in told.err
    assert set(Store(tmp_path / "C").read().finished) == {spec.key for spec in specs}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table2", "A"], "table2 takes none"),
        (["merge"], "no store was given"),
        (["table2", "--time-limit", "soon"], "such as 90s, 30m or 2h"),
        (["table2", "--jobs", "0"], "expected at least 1"),
        (["table2", "--columns", "node-Atlantis"], "there is no column"),
        (["merge", __file__], "is not part of a store: none of its lines is a record"),
    ],
)
def test_mistakes_are_one_line(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *arguments])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and said in told and told.count("\n") == 1


def _living(group: int) -> list[str]:
    """The processes of a group, without zombies."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(tmp_path):
    code = "from idgnn.cli.main import main; main()"
    command = [sys.executable, "-c", code, "reproduce", "table2", *CHOSEN, "--store", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done(Store(tmp_path), Choice(("table2",), ("path-SmallWorld",), ("gcn",), seeds=(0,)).specs())
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert "1 of 2 runs have finished" in process.stdout.readline()
        parent = psutil.Process(process.pid)
        while not any("spawn_main" in " ".join(child.cmdline()) for child in parent.children()):
            time.sleep(0.05)
        time.sleep(0.5)  # the process of the run imports PyTorch
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of its processes
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "0 finished, 0 failed, 1 not run (stopped)" in out and "Traceback" not in err
    assert len(Store(tmp_path).read().records) == 1
    for _ in range(100):  # Python's own helper ends a moment later
        if not _living(process.pid):
            break
        time.sleep(0.1)
    assert not _living(process.pid)
