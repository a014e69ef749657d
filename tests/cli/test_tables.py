"""`idgnn train`, `predict`, `embed` and `inspect` on a folder of tables."""

import csv
import json
import math
from pathlib import Path

import pytest

from idgnn.cli import tables
from idgnn.cli.main import main
from idgnn.training.relational_runs import load_run, predictions
from tests.cli.small_tables import TASKS, run_of, train, write_tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_train_predict_and_embed_a_recommendation(folder, capsys):
    train(folder, "--task", "recommendation", "--epochs", "30", "--lr", "0.03")
    out = capsys.readouterr().out
    assert "Text is left out: remark of users." in out
    assert "most used, 5 years" in out and "past visits, 5 years" in out
    record = json.loads((run_of(folder) / "relational.json").read_text())
    assert record["metrics"]["test"]["map"] > record["heuristics"]["test"]["most used, 1 year"]["map"]

    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\nu0,2003-01-01\n")
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv")]
    main(["predict", str(run_of(folder)), *given, "--output", str(folder / "out.csv")])
    rows = rows_of(folder / "out.csv")
    assert [(row["user"], row["day"], row["rank"]) for row in rows] == [
        ("u1", "2004-01-01", "1"),
        ("u1", "2004-01-01", "2"),
        ("u0", "2003-01-01", "1"),
        ("u0", "2003-01-01", "2"),
    ]
    assert float(rows[0]["score"]) >= float(rows[1]["score"])
    main(["embed", str(run_of(folder)), *given, "--output", str(folder / "h.csv")])
    assert [len(row) for row in rows_of(folder / "h.csv")] == [2 + 8] * 2


def test_train_and_predict_a_number(folder, capsys):
    train(folder, "--task", "entity-regression", "--identity", "none")
    assert "median" in capsys.readouterr().out
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv")]
    main(["predict", str(run_of(folder)), *given, "--output", str(folder / "out.csv")])
    [row] = rows_of(folder / "out.csv")
    assert set(row) == {"user", "day", "visits"}


def test_a_stopped_run_is_resumed(folder, capsys, monkeypatch):
    lines = tables._line

    def stop(epoch):
        if epoch["epoch"] == 1:
            raise KeyboardInterrupt
        return lines(epoch)

    monkeypatch.setattr(tables, "_line", stop)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        train(folder, "--task", "entity-regression", "--device", "cpu", "--width", "4")
    monkeypatch.setattr(tables, "_line", lines)
    run = run_of(folder)
    assert not (run / "relational.json").exists()
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    with pytest.raises(ValueError, match="not finished"):
        load_run(run)
    capsys.readouterr()
    main(["train", "--resume", str(run)])
    out = capsys.readouterr().out
    assert "epoch 3" in out and "epoch 1 " not in out
    record = json.loads((run / "relational.json").read_text())
    assert (record["settings"]["hidden_channels"], len(record["epochs"])) == (4, 3)
    assert not (run / "checkpoint.safetensors").exists()
    with pytest.raises(SystemExit):
        main(["train", "--resume", str(run)])
    assert "is finished" in capsys.readouterr().err


def test_columns_by_pytorch_frame_are_trained_saved_and_read_again(folder):
    pytest.importorskip("torch_frame")
    rows = [f"i{i},{i / 2},{'ab'[i % 2]},200{i}-01-01\n" for i in range(6)]
    (folder / "items.csv").write_text("id,price,kind,made\n" + "".join(rows))
    train(folder, "--task", "recommendation", "--columns", "frame", "--dropout", "0.1")
    run = load_run(run_of(folder))
    assert list(run.model.encoder.encoders.keys()) == ["items"]
    weights = dict(run.model.encoder.encoders["items"].named_parameters())
    assert {name.split(".")[2] for name in weights} == {"numerical", "categorical", "timestamp"}
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    found = predictions(run, folder, folder / "ask.csv")
    assert len(found["items"]) == 2 and predictions(load_run(run_of(folder)), folder, folder / "ask.csv") == found
    # A row without values is answered, too.
    (folder / "items.csv").write_text("id,price,kind,made\n" + "".join(rows[:5]) + "i5,,c,\n")
    assert all(math.isfinite(score) for score in predictions(run, folder, folder / "ask.csv")["score"])


@pytest.mark.parametrize("names", [("no", "yes"), ("low", "middle", "high")])
def test_classes_have_names(folder, names, capsys):
    with (folder / "tasks.toml").open("a") as file:
        file.write(
            TASKS.split("[count]")[1].join(["\n[level]", ""]).replace("entity-regression", "entity-classification")
        )
    for part, years in (("train", (1, 2)), ("valid", (3,))):
        rows = [f"200{y}-01-01,u{u},{names[u % len(names)]}\n" for y in years for u in range(6)]
        (folder / f"count_{part}.csv").write_text("day,user,visits\n" + "".join(rows))
    train(folder, "--task", "entity-classification")
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv")]
    main(["predict", str(run_of(folder)), *given, "--output", str(folder / "out.csv")])
    [row] = rows_of(folder / "out.csv")
    assert row["visits"] in names
    shares = {name: float(row[f"probability_{name}"]) for name in names if f"probability_{name}" in row}
    assert set(shares) == (set(names) if len(names) > 2 else {"yes"})
    if len(names) > 2:
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5) and max(shares, key=shares.get) == row["visits"]


def test_names_where_numbers_are_expected_get_a_sentence(folder, capsys):
    (folder / "count_train.csv").write_text("day,user,visits\n2001-01-01,u1,yes\n")
    with pytest.raises(SystemExit):
        train(folder, "--task", "entity-regression")
    error = " ".join(capsys.readouterr().err.split())
    assert "column 'visits' is 'yes', expected a number. Classes by name are for entity-classification" in error


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "there are no queries to answer"),
        ("u1,2031-01-01\n", "asks about 2031-01-01, more than a year in the future of the data"),
        ("u1,1999-01-01\n", "nothing was known before"),
    ],
)
def test_queries_that_cannot_be_answered_are_refused(folder, capsys, rows, message):
    train(folder, "--task", "entity-regression", "--epochs", "1")
    (folder / "ask.csv").write_text("user,day\n" + rows)
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv"), "--output", str(folder / "out.csv")]
    with pytest.raises(SystemExit):
        main(["predict", str(run_of(folder)), *given])
    assert message in capsys.readouterr().err and not (folder / "out.csv").exists()


def test_inspect_prints_schema_reach_and_cost(folder, capsys):
    main(["inspect", "--tables", str(folder)])
    out = capsys.readouterr().out
    assert "user → users" in out
    assert "Layers that a color needs" in out
    assert "Cost of ID-GNN-Full" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "recommendation", "--layers", "1"], "'items' is 2 message steps from 'users'"),
        (["--task", "entity-classification"], "has 0 tasks of the kind entity-classification"),
        (["--task", "recommendation", "--target", "what"], "has no task 'what'; it has next, count"),
        (["--task", "recommendation", "--target", "count"], "is of the kind entity-regression"),
        (["--task", "node-classification"], "--tables is for the tasks"),
        (["ENZYMES", "--task", "recommendation"], "beside a dataset"),
        (["--task", "recommendation", "--class-weights", "balanced"], "--class-weights has no effect with --tables"),
        (["--task", "recommendation", "--conv", "gin", "--batch-size", "4"], "--conv, --batch-size have no effect"),
        (["--task", "recommendation", "--features", "degree"], "--features has no effect with --tables, which takes"),
        (["--task", "recommendation", "--conv", "gin"], "--window-years, --columns. Leave it out."),
        (["--task", "recommendation", "--label", "y"], "beside a dataset or files of graphs"),
        (["--task", "recommendation", "--window-years", "-1"], "window_years is -1.0, expected more than 0 years"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(folder, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        train(folder, *arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_run_on_tables_wants_tables(folder, capsys):
    train(folder, "--task", "entity-regression", "--epochs", "1")
    with pytest.raises(SystemExit):
        main(["predict", str(run_of(folder)), "ENZYMES"])
    assert "Add --tables FOLDER and --queries FILE" in capsys.readouterr().err


def test_a_task_for_tables_without_tables(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--task", "recommendation"])
    assert "Add --tables FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "recommendation"', 'kind = "guess"', "of the kind 'guess', expected one of"),
        ('item_table = "items"\n', "", "item_table belongs to a recommendation"),
        ('time = "day"\ntarget = "items"', 'target = "items"', "has no time"),
        ("k = 2", "depth = 2", "has 'depth', expected some of"),
        ("k = 2", "k = 0", "k is 0, expected"),
        ("k = 2", 'upto = { tst = "2003-01-01" }', "upto names 'tst', expected some of train, valid, test"),
        ("[next]", "[next", "is not a file of tasks in TOML"),
    ],
)
def test_a_file_of_tasks_that_does_not_fit_is_refused(folder, capsys, old, new, message):
    assert old in TASKS
    (folder / "tasks.toml").write_text(TASKS.replace(old, new))
    with pytest.raises(SystemExit):
        train(folder, "--task", "recommendation")
    assert message in capsys.readouterr().err
