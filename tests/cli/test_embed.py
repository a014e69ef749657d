"""`idgnn embed` on a graph that takes a while: little memory, and a process that is killed."""

import json
import os
import signal
import subprocess
import sys
import time

import networkx as nx
import numpy as np
import psutil
import pytest

from idgnn.cli.main import main

IDGNN = [sys.executable, "-c", "from idgnn.cli.main import main; main()"]
FILES = ["--edges", "edges.csv", "--nodes", "nodes.csv"]
SMALL = "2500KiB"  # a hundred chunks or so


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A network of 2,000 people with hubs, and a run that was trained on it for an epoch."""
    folder = tmp_path_factory.mktemp("embed")
    edges = nx.barabasi_albert_graph(2000, 2, seed=0).edges
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"p{a},p{b}\n" for a, b in edges))
    (folder / "nodes.csv").write_text("id,age,kind\n" + "".join(f"p{i},{i % 70},{'ab'[i % 2]}\n" for i in range(2000)))
    before = os.getcwd()
    os.chdir(folder)
    try:
        task = ["--task", "node-classification", "--label", "kind"]
        main(["train", *FILES, *task, "--width", "8", "--epochs", "1", "--device", "cpu"])
        yield folder
    finally:
        os.chdir(before)


def command(folder, output: str, *more: str) -> list[str]:
    (run,) = (folder / "runs").iterdir()
    return ["embed", str(run), *FILES, "--output", output, "--device", "cpu", *more]


def embeddings(path) -> np.ndarray:
    with np.load(path) as file:
        return file["embedding"]


def test_little_memory_changes_nothing(folder, capsys):
    main(command(folder, "whole.npz"))
    main(command(folder, "parts.npz", "--memory", SMALL))
    assert "2,000 embeddings of width 8: parts.npz" in capsys.readouterr().out
    whole, parts = embeddings(folder / "whole.npz"), embeddings(folder / "parts.npz")
    assert whole.shape == (2000, 8) and whole.dtype == np.float32
    np.testing.assert_allclose(parts, whole, atol=1e-5)
    assert not list(folder.glob(".*"))  # nothing is left behind


def test_it_continues_after_kill_9(folder, capsys):
    main(command(folder, "expected.npz"))
    arguments = command(folder, "killed.npz", "--memory", SMALL)
    note = folder / ".killed.npz.partial.json"
    process = subprocess.Popen([*IDGNN, *arguments], cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 60
    while not note.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = json.loads(note.read_text())["done"]
    assert 0 < done < 2000
    assert not (folder / "killed.npz").exists()

    kept = np.fromfile(folder / ".killed.npz.partial", np.float32).reshape(2000, 8)
    kept[:done] = 7  # to see that it is not computed again
    kept.tofile(folder / ".killed.npz.partial")
    main(arguments)
    found, expected = embeddings(folder / "killed.npz"), embeddings(folder / "expected.npz")
    assert (found[:done] == 7).all()
    np.testing.assert_allclose(found[done:], expected[done:], atol=1e-5)
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize(
    ("memory", "sentence"),
    [("10KiB", "Give more (memory=..., --memory), or"), ("much", "expected a number of bytes or a size such as")],
)
def test_mistakes_are_one_line(folder, capsys, memory, sentence):
    with pytest.raises(SystemExit) as stop:
        main(command(folder, "refused.npz", "--memory", memory))
    said = capsys.readouterr().err
    assert stop.value.code == 2 and sentence in said and said.count("\n") == 1
    assert not (folder / "refused.npz").exists()


def test_what_is_refused_leaves_nothing_behind(folder, capsys):
    before = set(folder.iterdir())
    for more, sentence in (
        ((), "is a folder, expected the name of a file"),
        (("--memory", "10KB"), "expected at least"),
    ):
        (folder / "made.npz").mkdir(exist_ok=True)
        with pytest.raises(SystemExit):
            main(command(folder, "refused.npz" if more else "made.npz", *more))
        assert sentence in capsys.readouterr().err
    (folder / "made.npz").rmdir()
    assert set(folder.iterdir()) == before


def torchrun(folder, processes: int, output: str, *more: str) -> subprocess.Popen[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    arguments = [*launcher, "-m", "idgnn", *command(folder, output, "--memory", SMALL, *more)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_what_one_writes_also_after_kill_9(folder):
    main(command(folder, "one.npz", "--memory", SMALL))
    notes = [folder / f".two.npz.partial.{rank}-of-2.json" for rank in range(2)]
    process = torchrun(folder, 2, "two.npz")
    deadline = time.monotonic() + 90
    while not all(note.exists() for note in notes) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    killed = psutil.Process(process.pid).children(recursive=True)
    for each in (*killed, process):
        each.kill()
    process.communicate()
    psutil.wait_procs(killed, timeout=30)
    begun = [json.loads(note.read_text()) for note in notes]
    assert begun[0]["begin"] == 0 < begun[0]["done"] <= begun[1]["begin"] < begun[1]["done"] <= 2000
    assert not (folder / "two.npz").exists()

    process = torchrun(folder, 2, "two.npz")
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 0 and said.count("2,000 embeddings of width 8: two.npz") == 1
    assert (folder / "two.npz").read_bytes() == (folder / "one.npz").read_bytes()
    assert not list(folder.glob(".*"))
