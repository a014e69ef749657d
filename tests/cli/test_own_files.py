"""A user's own edge list, with names as node ids, from the command line to a model, predictions and embeddings."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from idgnn import FileSource, ModelSettings, train
from idgnn.cli.main import main
from idgnn.graphs import load as loading
from idgnn.graphs import synthetic
from idgnn.training.run_settings import TrainOptions
from idgnn.training.trained import Run

IDGNN = [sys.executable, "-c", "from idgnn.cli.main import main; main()"]


@pytest.fixture
def club(tmp_path, monkeypatch) -> Path:
    """The karate club as a user would have it: members with names, what they pay, and the club they joined, if any."""
    graph = nx.karate_club_graph()
    names = {member: f"member {member}, Zürich" for member in graph}
    with (tmp_path / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("source", "target"), *((names[a], names[b]) for a, b in graph.edges)])
    with (tmp_path / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [(names[v], 10 * v, "" if v % 9 == 4 else graph.nodes[v]["club"]) for v in graph]
        csv.writer(file).writerows([("id", "fee", "club"), *rows])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run_folder(folder: Path) -> Path:
    (found,) = (folder / "runs").iterdir()
    return found


FILES = ["--edges", "edges.csv", "--nodes", "nodes.csv"]
TRAIN = ["train", *FILES, "--label", "club", "--task", "node-classification", "--width", "8", "--device", "cpu"]


def test_train_predict_embed(club, capsys):
    main([*TRAIN, "--epochs", "30"])
    run = run_folder(club)
    said = capsys.readouterr().out
    assert "roc_auc" in said and run.name in said.replace("\n", "")
    record = json.loads((run / "run.json").read_text())
    assert record["result"]["last"]["epoch"] == 30
    assert {"model.safetensors", "metrics.jsonl", "predictions.csv", "curves.png"} <= {p.name for p in run.iterdir()}
    assert not (run / "checkpoint.safetensors").exists()
    held_out = rows(run / "predictions.csv")
    assert held_out[0].keys() == {"part", "graph", "node", "label", "class", "probability_Officer"}
    assert {row["label"] for row in held_out} <= {"Mr. Hi", "Officer"}

    main(["predict", str(run), *FILES, "--output", "predictions.csv"])
    predicted = {row["node"]: row for row in rows(club / "predictions.csv")}
    assert len(predicted) == 34  # also those whose club is not known
    for row in held_out:
        assert predicted[row["node"]]["class"] == row["class"]
        ours, theirs = float(predicted[row["node"]]["probability_Officer"]), float(row["probability_Officer"])
        assert ours == pytest.approx(theirs, abs=1e-5)

    main(["embed", str(run), *FILES, "--output", "embeddings.npz"])
    with np.load(club / "embeddings.npz") as file:
        assert file["embedding"].shape == (34, 8)
        assert file["node"].tolist() == list(predicted)
    main(["embed", str(run), *FILES, "--output", "embeddings.csv"])
    assert list(rows(club / "embeddings.csv")[0])[:3] == ["graph", "node", "e0"]


def test_embeddings_that_keep_their_length(club, capsys):
    chosen = ["--identity", "full", "--colors", "2", "--pool", "mean", "--act", "silu", "--layers", "3"]
    main([*TRAIN, *chosen, "--no-normalize", "--epochs", "2"])
    said = capsys.readouterr().out
    assert "gcn, identity full, colors 2, pool mean, act silu, normalize False, " in said
    unscaled = run_folder(club)
    main([*TRAIN, *chosen, "--epochs", "2", "--runs", "normalized"])
    (scaled,) = (club / "normalized").iterdir()
    for folder in (unscaled, scaled):
        main(["embed", str(folder), *FILES, "--output", "embeddings.npz"])
        with np.load(club / "embeddings.npz") as file:
            lengths = np.linalg.norm(file["embedding"], axis=1)
        assert np.allclose(lengths, 1, atol=1e-5) == (folder == scaled)


def test_new_nodes_are_read_as_the_old_ones_were(club):
    main([*TRAIN, "--epochs", "2"])
    (club / "new_edges.csv").write_text("source,target\nann,ben\nben,cid\n")
    (club / "new_nodes.csv").write_text("id,fee\nann,0\nben,30\ncid,50\n")  # no column with the label
    new = ["--edges", "new_edges.csv", "--nodes", "new_nodes.csv"]
    main(["predict", str(run_folder(club)), *new, "--output", "new.csv"])
    assert [row["node"] for row in rows(club / "new.csv")] == ["ann", "ben", "cid"]


def test_features_are_standardized_by_the_graphs_of_the_training_part(club):
    rng, graphs = np.random.default_rng(0), range(20)
    ages = {f"g{graph}": rng.integers(20, 80, size=4).tolist() for graph in graphs}
    edges = [(name, i, (i + 1) % 4) for name in ages for i in range(4)]
    nodes = [(name, i, age) for name in ages for i, age in enumerate(ages[name])]
    for path, table in (
        ("e.csv", [("graph", "source", "target"), *edges]),
        ("n.csv", [("graph", "id", "age"), *nodes]),
    ):
        with (club / path).open("w", newline="") as file:
            csv.writer(file).writerows(table)
    (club / "g.csv").write_text("graph,kind\n" + "".join(f"g{graph},{graph % 3}\n" for graph in graphs))
    files = ["--edges", "e.csv", "--nodes", "n.csv"]
    task = ["--graphs", "g.csv", "--label", "kind", "--task", "graph-classification", "--test", "0.2"]
    main(["train", *files, *task, "--epochs", "2", "--width", "8"])
    run = run_folder(club)
    held_out = {row["graph"]: row["probability_1"] for row in rows(run / "predictions.csv")}
    training = [age for name in ages if name not in held_out for age in ages[name]]
    assert len(held_out) == 8 and len(training) == 48
    (column,) = json.loads((run / "run.json").read_text())["dataset"]["schema"]["node"]
    assert column["mean"] == pytest.approx(np.mean(training)) and column["scale"] == pytest.approx(np.std(training))

    main(["predict", str(run), *files, "--output", "again.csv"])
    predicted = {row["graph"]: row["probability_1"] for row in rows(club / "again.csv")}
    for name, probability in held_out.items():
        assert float(predicted[name]) == pytest.approx(float(probability), abs=1e-5)


def test_pairs(club):
    main(["train", *FILES, "--ignore", "club", "--task", "link-prediction", "--epochs", "2", "--width", "8"])
    (club / "pairs.csv").write_text('source,target\n"member 0, Zürich","member 33, Zürich"\n')
    main(["predict", str(run_folder(club)), *FILES, "--pairs", "pairs.csv", "--output", "links.csv"])
    (row,) = rows(club / "links.csv")
    assert row["source"] == "member 0, Zürich" and 0 < float(row["probability"]) < 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["predict", "nowhere", *FILES], "there is no run.json in nowhere"),
        (["train", "--edges", "nowhere.csv", "--task", "node-clustering"], "nowhere.csv. Check the path"),
        (["train", "ENZIMES", "--task", "node-clustering"], "there is no dataset 'ENZIMES'"),
        (["train", "--task", "node-clustering"], "neither a dataset nor files"),
        (["train", *FILES, "--label", "rank", "--task", "node-classification"], "no column 'rank'"),
        (["train", *FILES, "--task", "node-classification"], "no y"),
        (["train", *FILES], "no task was given"),
        (["train", *FILES, "--task", "node-clustering", "--device", "cuda:77"], "device 'cuda:77'"),
        (["train", *FILES, "--task", "node-clustering", "--device", "gpu"], "(there is none of that name; GPUs are"),
        (["train", *FILES, "--label", "club", "--task", "node-regression"], "the label 'club' holds text, such as"),
        (["trian"], "Did you mean train?"),
        (["train", "--resume", "nowhere"], "there is no run.json in nowhere"),
        (["train", "--resume", "edges.csv"], "edges.csv is a file, expected the folder of a run"),
        (["train", *FILES, "--task", "node-clustering", "--track", "wandb"], "pip install 'idgnn[wandb]'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(club, capsys, arguments, sentence):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert sentence in said and said.startswith("idgnn: ")
    assert said.count("\n") == 1 and "Traceback" not in said


def test_bad_rows_are_all_named(club, capsys):
    (club / "edges.csv").write_text("source,target\nann,ben\nben\nann,ben,cid\n")
    with pytest.raises(SystemExit) as stop:
        main(["train", "--edges", "edges.csv", "--task", "node-clustering"])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert "edges.csv:3:" in said and "edges.csv:4:" in said


def test_ctrl_c_leaves_a_run_that_can_be_resumed(club):
    process = subprocess.Popen(
        [*IDGNN, *TRAIN, "--epochs", "3000"],
        cwd=club,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(club.glob("runs/*/checkpoint.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in complaints
    assert f"idgnn train --resume runs/{run_folder(club).name}" in said
    record = json.loads((run_folder(club) / "run.json").read_text())
    assert record["result"] is None


def test_resume(club, capsys):
    from idgnn.training.callbacks import Callback
    from idgnn.training.run_folder import RunFolder
    from idgnn.training.train import train

    class Stop(Callback):
        def epoch(self, epoch):
            if epoch.epoch == 3:
                raise KeyboardInterrupt

    main([*TRAIN, "--epochs", "6"])
    whole = run_folder(club)
    settings = RunFolder(whole).settings()
    half = club / "half"
    with pytest.raises(KeyboardInterrupt):
        train(
            settings.data,
            settings.task,
            model=settings.model,
            training=settings.training,
            folder=half,
            callbacks=[Stop()],
        )
    main(["train", "--resume", str(half)])
    assert (half / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert (half / "predictions.csv").read_text() == (whole / "predictions.csv").read_text()


def test_whole_numbers_are_quantities_in_a_regression(club):
    with (club / "nodes.csv").open(encoding="utf-8") as file:
        lines = [line.rstrip("\n").rsplit(",", 1)[0] for line in file]
    ages = ["age", *(("NA", "20", "30", "100")[i % 4] for i in range(len(lines) - 1))]
    (club / "nodes.csv").write_text("\n".join(",".join(pair) for pair in zip(lines, ages, strict=True)))
    main(["train", *FILES, "--label", "age", "--task", "node-regression", "--epochs", "2", "--width", "4"])
    held_out = rows(run_folder(club) / "predictions.csv")
    assert {float(row["label"]) for row in held_out} <= {20.0, 30.0, 100.0}


def test_distances_on_a_single_graph(club):
    main(["train", "--edges", "edges.csv", "--task", "shortest-path", "--epochs", "1", "--width", "4"])
    held_out = rows(run_folder(club) / "predictions.csv")
    assert {row["class"] for row in held_out} <= {"0", "1", "2", "3", "4 or more"}
    assert len(held_out) == 200


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--resume", "half", "--epochs", "500"], "Leave all others out beside --resume"),
        (["--resume", "half", "--batch-size", "128"], "Leave all others out beside --resume"),  # as by default
        ([*FILES, "--task", "node-clustering", "--seeds", "1", "1"], "none of them twice"),
        ([*FILES, "--task", "node-clustering", "--seeds"], "expected at least one"),
        ([*FILES, "--task", "node-clustering", "--seeds", "0", "-1"], "[0, -1], expected whole numbers of at least 0"),
        ([*FILES, "--task", "graph-clustering"], "needs several"),
        ([*FILES, "--task", "node-clustering", "--conv", "gine"], "gine reads edge features"),
        ([*FILES, "--task", "node-clustering", "--runs", "edges.csv"], "cannot be made a folder"),
    ],
)
def test_what_would_be_ignored_is_refused_and_leaves_nothing_behind(club, capsys, arguments, sentence):
    with pytest.raises(SystemExit) as stop:
        main(["train", *arguments])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert sentence in said and said.count("\n") == 1
    assert not list(club.glob("runs/*"))


def test_a_forgotten_table_of_nodes_is_asked_for(club, capsys):
    main([*TRAIN, "--epochs", "1"])
    with pytest.raises(SystemExit):
        main(["predict", str(run_folder(club)), "--edges", "edges.csv"])
    assert "Give the table of nodes as well (--nodes)" in capsys.readouterr().err
    (club / "others.csv").write_text("id,age\nann,3\n")
    with pytest.raises(SystemExit):
        main(["predict", str(run_folder(club)), "--edges", "edges.csv", "--nodes", "others.csv"])
    assert "lacks the columns 'fee'; it has 'age'. The network was trained with them: add" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_one_sentence(club, capsys):
    main([*TRAIN, "--epochs", "1"])
    with pytest.raises(SystemExit) as stop:
        main(["predict", str(run_folder(club)), *FILES, "--output", "edges.csv/p.csv"])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and "cannot be written" in said and "Errno" not in said


def test_a_run_can_be_resumed_from_another_folder(club, monkeypatch):
    from idgnn.training.run_folder import RunFolder

    main([*TRAIN, "--epochs", "1"])
    assert RunFolder(run_folder(club)).settings().data.edges == club / "edges.csv"


@pytest.mark.parametrize("directed", [False, True])
def test_edges_have_the_directions_of_the_training(club, capsys, directed):
    main([*TRAIN, "--epochs", "1", "--identity", "none", "--layers", "1", *["--directed"] * directed])
    folder = run_folder(club)
    capsys.readouterr()
    (club / "one.csv").write_text("source,target\na,b\n")
    (club / "other.csv").write_text("source,target\nb,a\n")
    (club / "pair.csv").write_text("id,fee\na,10\nb,300\n")
    for name in ("one", "other"):
        main(["predict", str(folder), "--edges", f"{name}.csv", "--nodes", "pair.csv", "--output", f"{name}_out.csv"])
    said = capsys.readouterr().out
    how = "one direction, as in training (--directed)" if directed else "both directions, as in training"
    assert said.count(f"Edges are read in {how}.\n") == 2
    one, other = ([row["probability_Officer"] for row in rows(club / f"{name}_out.csv")] for name in ("one", "other"))
    assert (one != other) == directed

    source = FileSource(club / "one.csv", club / "pair.csv", directed=True)
    if directed:
        expected = [row["class"] for row in rows(club / "one_out.csv")]
        assert Run.load(folder).predict(source, device="cpu")["class"] == expected
    else:
        with pytest.raises(ValueError, match="said to be directed, but the network was trained on edges in both"):
            Run.load(folder).predict(source, device="cpu")


def test_files_for_a_run_without_files_are_read_in_both_directions(club, capsys):
    edges = torch.stack([torch.arange(29), torch.arange(1, 30)])
    path = Data(x=torch.ones(30, 1), edge_index=edges, y=torch.arange(30) % 3)
    train(path, "node-classification", model=ModelSettings(width=8), training=TrainOptions(epochs=1), folder=club / "r")
    main(["embed", "r", *FILES[:2]])
    assert "Edges are read in both directions: the run was not trained on files" in capsys.readouterr().out


@pytest.fixture
def small_world(tmp_path, monkeypatch):
    """The dataset SmallWorld, made smaller: its nodes have as many features as those of the club, one."""
    monkeypatch.setenv("IDGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(loading._GENERATORS, "SmallWorld", lambda seed: synthetic.small_world(4, 12, seed))


@pytest.mark.parametrize("verb", ["predict", "embed"])
def test_a_dataset_by_name_has_no_columns_of_files(club, small_world, capsys, verb):
    main([*TRAIN, "--epochs", "1"])
    with pytest.raises(SystemExit) as stop:
        main([verb, str(run_folder(club)), "SmallWorld", "--output", "out.npz"])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said.count("\n") == 1
    assert "SmallWorld lacks the columns 'fee'; the features of a dataset by name are not columns" in said
    assert not (club / "out.npz").exists()


@pytest.mark.parametrize("verb", ["predict", "embed"])
@pytest.mark.parametrize("data", [["SmallWorld"], ["--edges", "edges.csv"]])
def test_runs_without_columns_are_used_on_a_dataset_by_name(club, small_world, verb, data):
    options = ["--task", "node-clustering", "--features", "constant", "--layers", "2", "--identity", "full"]
    main(["train", *data, *options, "--epochs", "1", "--width", "8", "--device", "cpu"])
    main([verb, str(run_folder(club)), "SmallWorld", "--output", "out.csv"])
    assert len(rows(club / "out.csv")) == 4 * 12
