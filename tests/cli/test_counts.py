import csv
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from idgnn.cli.main import main
from idgnn.cli.pairs import read_pair_rows, read_pairs
from idgnn.graphs.files.read import read_files
from idgnn.graphs.files.text import BadRows
from idgnn.graphs.sources import FileSource

NAMES = ["Ann", "Bob", "Cy", "Dee, Jr."]
A = np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
ONE = 'source,target\nAnn,Bob\nBob,Cy\nCy,Ann\nCy,"Dee, Jr."\n'
MANY = "graph,source,target\ntail,x,y\nring,1,2\nring,2,3\ntail,y,z\nring,3,1\n"


def powers(matrix: np.ndarray, length: int) -> list[np.ndarray]:
    return [np.linalg.matrix_power(matrix.astype(object), k) for k in range(1, length + 1)]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def fails(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_cycle_counts_are_the_diagonals_of_matrix_powers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges, output = written(tmp_path, "friends.csv", ONE), tmp_path / "out.csv"
    main(["counts", "--edges", str(edges), "--length", "5", "-o", str(output)])
    head, *rows = table(output)
    assert head == ["graph", "node", "walks_1", "walks_2", "walks_3", "walks_4", "walks_5"]
    walks = powers(A, 5)
    assert rows == [["friends", name, *(str(power[i, i]) for power in walks)] for i, name in enumerate(NAMES)]
    assert capsys.readouterr().out == f"walks of 4 nodes, a row each: {output}\n"


def test_other_scales(tmp_path: Path) -> None:
    edges, output = written(tmp_path, "friends.csv", ONE), tmp_path / "out.npz"
    walks = np.stack([np.diag(power) for power in powers(A, 4)], 1).astype(float)
    main(["counts", "--edges", str(edges), "--length", "4", "--scale", "log", "-o", str(output)])
    found = np.load(output)
    np.testing.assert_allclose(np.stack([found[f"walks_{k}"] for k in range(1, 5)], 1), np.log1p(walks))
    main(["counts", "--edges", str(edges), "--length", "4", "--scale", "walk", "-o", str(output)])
    found, random_walk = np.load(output), A / A.sum(1, keepdims=True)
    for k in range(1, 5):
        np.testing.assert_allclose(found[f"walks_{k}"], np.diag(np.linalg.matrix_power(random_walk, k)), atol=1e-12)
    assert found["node"].tolist() == NAMES


def test_pairs_are_answered_in_the_order_of_their_table(tmp_path: Path) -> None:
    edges = written(tmp_path, "e.csv", MANY)
    asked = [("ring", "3", "1"), ("tail", "x", "z"), ("ring", "2", "2"), ("tail", "z", "z"), ("ring", "1", "3")]
    pairs = written(tmp_path, "p.csv", "target,graph,source\n" + "".join(f"{v},{g},{u}\n" for g, u, v in asked))
    output = tmp_path / "out.csv"
    main(["counts", "--edges", str(edges), "--directed", "--pairs", str(pairs), "--length", "4", "-o", str(output)])
    ring, tail = np.roll(np.eye(3, dtype=int), 1, axis=1), np.diag([1, 1], 1)
    names = {"ring": (ring, "123"), "tail": (tail, "xyz")}
    head, *rows = table(output)
    assert head == ["graph", "source", "target", "walks_1", "walks_2", "walks_3", "walks_4"]
    assert rows == [
        [g, u, v, *(str(power[names[g][1].index(u), names[g][1].index(v)]) for power in powers(names[g][0], 4))]
        for g, u, v in asked
    ]


def test_rounded_counts_of_pairs_are_a_warning_and_their_logarithms_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges, pairs = written(tmp_path, "e.csv", ONE), written(tmp_path, "p.txt", "Ann Bob\nCy Cy\n")
    output = tmp_path / "out.npz"
    arguments = ["counts", "--edges", str(edges), "--pairs", str(pairs), "--length", "60", "-o", str(output)]
    main([*arguments, "--scale", "log"])
    last = powers(A, 60)[-1]
    np.testing.assert_allclose(np.load(output)["walks_60"], [np.log(float(last[0, 1])), np.log(float(last[2, 2]))])
    assert capsys.readouterr().err == ""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main(arguments)
    assert re.match("idgnn: note: .* walk counts reach 2\\^53", capsys.readouterr().err)
    kinds = [np.load(output)[f"walks_{k}"].dtype.kind for k in range(1, 61)]
    exact = sum(max(power[0, 1], power[2, 2]) < 2**53 for power in powers(A, 60))
    assert kinds == ["i"] * exact + ["f"] * (60 - exact)


def test_a_dataset_by_name_has_numbers(tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDGNN_CACHE", str(tmp_path / "cache"))
    pairs, output = written(tmp_path, "p.csv", "graph,source,target\n187,1,0\n0,0,1\n"), tmp_path / "out.csv"
    main(["counts", "mutag", "--length", "2", "-o", str(output)])
    assert [row[:2] for row in table(output)[1:3]] == [["0", "0"], ["0", "1"]]
    main(["counts", "mutag", "--length", "2", "-o", str(output), "--pairs", str(pairs)])
    assert [row[:3] for row in table(output)[1:]] == [["187", "1", "0"], ["0", "0", "1"]]


def test_pairs_of_each_graph_keep_the_order_of_the_file(tmp_path: Path) -> None:
    graphs = read_files(FileSource(written(tmp_path, "e.csv", MANY))).graphs
    path = written(tmp_path, "p.csv", "graph,source,target\nring,3,1\ntail,x,z\nring,1,2\n")
    tail, ring = read_pairs(path, graphs)
    assert (tail.tolist(), ring.tolist()) == ([[0], [2]], [[2, 0], [0, 1]])
    rows = read_pair_rows(path, graphs)
    assert (rows.owner.tolist(), rows.nodes.tolist()) == ([1, 0, 1], [[2, 0, 0], [0, 2, 1]])
    only = written(tmp_path, "q.csv", "graph,source,target\ntail,x,z\n")
    assert [list(pairs.shape) for pairs in read_pairs(only, graphs)] == [[2, 1], [2, 0]]


def test_every_bad_row_of_a_pair_table_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = written(tmp_path, "e.csv", MANY)
    rows = "ring,1,2\nring,9,8\nrong,1,2\n,1,2\nring,1\ntail,,x\n"
    pairs = written(tmp_path, "p.csv", f"graph,source,target\n{rows}")
    with pytest.raises(BadRows) as error:
        read_pairs(pairs, read_files(FileSource(edges)).graphs)
    assert [(row.line, row.what) for row in error.value.rows] == [
        (3, "there is no node '9', expected one of '1', '2', '3'; there is no node '8', expected one of '1', '2', '3'"),
        (4, "there is no graph 'rong', expected one of 'tail', 'ring'"),
        (5, "the graph is empty"),
        (6, "2 cells, expected 3: graph, source, target"),
        (7, "the source is empty"),
    ]
    output = tmp_path / "out.csv"
    said = fails(capsys, ["counts", "--edges", str(edges), "--pairs", str(pairs), "-o", str(output)])
    assert f"{pairs}:3: " in said and f"{pairs}:7: " in said and not output.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "expected one of them"),
        (["--edges", "{e}", "MUTAG"], "expected one of them"),
        (["--edges", "{e}", "-o", "{e}.txt"], "ends in .csv, .parquet, .npz"),
        (["--edges", "{e}", "--length", "0"], "length is 0, expected a whole number of at least 1"),
        (["--edges", "{e}", "--pairs", "{p}", "--scale", "walk"], "--scale walk is for nodes"),
        (["--edges", "{m}", "--pairs", "{p}"], "has no column 'graph', and there are 2 graphs"),
        (["--edges", "{e}", "--pairs", "{empty}"], "has no pairs"),
        (["--edges", "{e}", "--pairs", "nowhere.csv"], "there is no file nowhere.csv"),
    ],
)
def test_mistakes_of_the_user_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    files = {
        "e": written(tmp_path, "e.csv", ONE),
        "m": written(tmp_path, "m.csv", MANY),
        "p": written(tmp_path, "p.csv", "source,target\nAnn,Bob\n"),
        "empty": written(tmp_path, "empty.csv", "source,target\n"),
    }
    said = fails(capsys, ["counts", *(each.format(**files) for each in arguments)])
    assert sentence in said and re.fullmatch(r"idgnn: [^\n]+\.\n", said)
